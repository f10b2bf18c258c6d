"""The client of an account on Slack with its database: what is particular to this platform."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bullpen.channels.slack import socket
from bullpen.core.channels.chats import Access
from bullpen.core.message import Answer, ReplyTo
from bullpen.core.models import MESSAGES, RESPONSES, SENDERS
from bullpen.core.outbox.write import send_to_person
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.slack import FakeSlack, SlackHarness
from tests.channels.on_slack.account import ANN, BOB
from tests.channels.served import AGENT, Served, account_settings
from tests.conformance.verbs import hire, rows
from tests.processor.working import eventually
from tests.stores import Stores

MALLORY = "U0MALLORY"
POST = "POST /api/chat.postMessage"


class ServedSlack(Served):
    """An account with its client; Ann and Bob are members."""

    def __init__(self, store: Store, fake: FakeSlack) -> None:
        super().__init__(store, "slack")
        self.fake = fake

    def add_channel(self, access: Access = Access.MEMBERS) -> str:
        """A channel, which the owner has let in."""
        chat = self.fake.new_chat(direct=False, name="general")
        self.allow(chat, access)
        return chat


@pytest.fixture
def served(stores: Stores, settings: Settings) -> Iterator[ServedSlack]:
    """An account whose client is connected."""
    with FakeSlack() as fake:
        given = SlackHarness(fake).settings()
        with stores.opened(account_settings(settings, "slack", given)) as store:
            hire(store, AGENT)
            made = ServedSlack(store, fake)
            for person in (ANN, BOB):
                made.add_person(person, name="")
            try:
                made.start()
                made.up()
                yield made
            finally:
                made.stop()


def test_replies_in_a_thread_of_the_bot_need_no_mention(served: ServedSlack) -> None:
    fake, chat = served.fake, served.add_channel()
    other = fake.say(chat, ANN, "between people", mention=False)
    fake.say(chat, ANN, "a reply between people", mention=False, thread=other)
    root = fake.say(chat, ANN, "first")
    served.stored("first")
    fake.say(chat, MALLORY, "from a stranger", mention=False, thread=root)
    fake.say(chat, ANN, f"<@{BOB}> what do you think?", mention=False, thread=root)
    fake.say(chat, BOB, "second", mention=False, thread=root)
    served.stored("first", "second")
    fake.say(chat, ANN, "third", thread=root)
    served.stored("first", "second", "third")
    assert rows(served.store, RESPONSES) == []  # no code for the stranger
    threads = {ReplyTo.parse(each["reply_to"]).thread for each in rows(served.store, MESSAGES)}
    assert threads == {root}


def test_the_first_reply_in_a_thread_is_found_although_nobody_heard_it(served: ServedSlack) -> None:
    fake, chat = served.fake, served.add_channel()
    root = fake.say(chat, ANN, "first")
    served.stored("first")
    served.stop()
    fake.say(chat, BOB, "second", mention=False, thread=root, live=False)
    fake.say(chat, ANN, "in the channel", live=False)
    served.start()
    eventually(lambda: len(served.texts()) == 3, "all are stored")
    assert sorted(served.texts()) == ["first", "in the channel", "second"]


def test_messages_on_the_first_of_two_connections_come_after_those_that_were_missed(
    served: ServedSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "SECOND_SECONDS", 1.0)
    fake = served.fake
    chat = fake.open_chat(ANN)
    fake.say(chat, ANN, "before")
    served.stored("before")
    harness = SlackHarness(fake)
    harness.offline()
    fake.say(chat, ANN, "meanwhile")
    fake.fail(Fault.ERROR, "POST /api/apps.connections.open", times=None, after=1)
    harness.online()
    fake.wait_for(lambda: fake.connections() == 1)
    fake.say(chat, ANN, "after")
    served.stored("before", "meanwhile", "after")


def test_a_direct_chat_that_began_while_bullpen_was_stopped_is_found(served: ServedSlack) -> None:
    """Slack sends an event again for six minutes only; after that, the list of chats has it."""
    fake = served.fake
    served.stop()
    fake.say(fake.open_chat(ANN), ANN, "my first message", live=False)
    stranger = fake.open_chat(MALLORY)
    fake.say(stranger, MALLORY, "who are you?", live=False)
    served.start()
    served.stored("my first message")
    eventually(lambda: "pairing approve" in "".join(fake.posts(stranger)), "the code")


def test_a_lost_answer_is_settled_by_the_event_with_its_key(served: ServedSlack) -> None:
    """Also while the history cannot be read."""
    fake = served.fake
    chat = fake.open_chat(ANN)
    fake.look_ups = False
    fake.fail(Fault.ERROR, POST, taken=True)
    with served.store.write() as tx:
        send_to_person(
            tx,
            Answer(message="hello"),
            channel="slack",
            sender="Ann",
            sender_id=ANN,
            reply_to=str(ReplyTo(chat)),
        )
    eventually(lambda: rows(served.store, RESPONSES)[0]["status"] == "acked", "it is settled")
    assert fake.posts(chat) == ["hello"]


def test_a_file_of_a_person_is_fetched_with_the_token(served: ServedSlack) -> None:
    chat = served.fake.open_chat(ANN)
    served.fake.say(chat, ANN, "look", files=[("a.txt", b"the content")])
    eventually(lambda: any(each["files"] for each in rows(served.store, MESSAGES)), "the file")
    served.stored("look")
    [fetched] = served.fake.requests("GET /files-pri/*")
    assert fetched.headers["authorization"].startswith("Bearer xoxb-")


def test_the_name_of_a_person_is_looked_up_once(served: ServedSlack) -> None:
    chat = served.fake.open_chat(ANN)
    served.fake.say(chat, ANN, "first")
    served.fake.wait_for_request("* /api/users.info")
    served.stored("first")

    def is_named() -> bool:
        served.fake.say(chat, ANN, "next")
        return bool(rows(served.store, MESSAGES)[-1]["sender"] == ANN.lower())

    eventually(is_named, "the name is known")
    assert len(served.fake.requests("* /api/users.info")) == 1


def test_a_stranger_gets_a_code_and_only_their_name_is_asked_of_slack(served: ServedSlack) -> None:
    """Also by a slash command and Stop (CVE-2026-28392); their files are not fetched."""
    fake = served.fake
    chat = fake.open_chat(MALLORY)
    fake.say(chat, MALLORY, "hello", files=[("a.txt", b"data")])
    eventually(lambda: len(fake.posts(chat)) == 1, "the code")
    assert "bullpen pairing approve" in fake.posts(chat)[0]
    fake.command(chat, MALLORY, "/bullpen", "agents")
    fake.say(chat, MALLORY, "!agents")
    fake.stop_session(chat, MALLORY, "1700000000.000100")
    fake.wait_for(lambda: not fake.unacked())
    assert fake.requests("GET /files-pri/*") == []
    eventually(lambda: rows(served.store, SENDERS)[0]["name"] == MALLORY.lower(), "the name")
    assert len(fake.requests("* /api/users.info")) == 1
    assert len(fake.posts(chat)) == 1
    assert served.texts() == []


@pytest.mark.parametrize("text", ["/bullpen status", "!status"])
def test_a_command_is_answered_where_it_was_written(served: ServedSlack, text: str) -> None:
    fake, chat = served.fake, served.add_channel()
    root = fake.say(chat, ANN, "first")
    served.stored("first")
    if text.startswith("/"):
        fake.command(chat, ANN, *text.split())
    else:
        fake.say(chat, ANN, text, thread=root, mention=False)
    eventually(lambda: len(fake.parts(chat)) == 1, "the answer")
    assert fake.parts(chat)[0].thread == (root if text.startswith("!") else "")
    assert served.texts() == ["first"]
