"""Discord with the base client and a database: what only Discord has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bullpen.core.models import CHATS, RESPONSES
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.channels.fakes.discord import CHANNEL, THREAD, DiscordHarness, FakeDiscord
from tests.channels.served import AGENT, Served, account_settings
from tests.conformance.verbs import hire, rows
from tests.processor.working import eventually
from tests.stores import Stores


class ServedDiscord(Served):
    """A bot with its database."""

    def __init__(self, store: Store, fake: FakeDiscord) -> None:
        super().__init__(store, "discord")
        self.fake = fake
        self.member = fake.person(1)["id"]
        self.stranger = fake.person(9)["id"]


@contextmanager
def serving(served: ServedDiscord) -> Iterator[None]:
    """The client, connected."""
    served.start()
    try:
        served.up()
        yield
    finally:
        served.stop()
    assert not served.ended.is_set()


@pytest.fixture
def stopped(stores: Stores, settings: Settings, fake: FakeDiscord) -> Iterator[ServedDiscord]:
    """A bot whose client the test starts."""
    given = DiscordHarness(fake).settings()
    with stores.opened(account_settings(settings, "discord", given)) as store:
        hire(store, AGENT)
        made = ServedDiscord(store, fake)
        made.add_person(made.member, name="Member")
        yield made


@pytest.fixture
def served(stopped: ServedDiscord) -> Iterator[ServedDiscord]:
    """A bot that is connected."""
    with serving(stopped):
        yield stopped


def test_a_slash_command_is_answered_by_a_message_and_its_deferral_is_deleted(
    served: ServedDiscord,
) -> None:
    fake = served.fake
    served.allow(CHANNEL)
    interaction = fake.command(CHANNEL, served.member, "agents")
    ended = ["pending", "deferred", "deleted"]
    eventually(lambda: fake.interactions[interaction] == ended, "it is answered")
    assert "@coder" in fake.posts(CHANNEL)[0]


def test_a_stranger_can_do_nothing_by_slash_command_button_or_edit(served: ServedDiscord) -> None:
    """CVE-2026-28392: every way in has the same authorisation."""
    fake = served.fake
    direct = fake.direct_chat(served.stranger)
    fake.command(direct, served.stranger, "agents")
    eventually(lambda: bool(fake.posts(direct)), "the code")
    [post] = fake.parts(direct)
    assert "@coder" not in post.text
    message = fake.say(direct, served.stranger, "hello")
    fake.edit(message, "/agents")
    fake.press(post.id, served.stranger, "/agents")
    fake.say(fake.direct_chat(served.member), served.member, "from a member")
    eventually(lambda: len(served.messages()) == 1, "the member's message")
    assert fake.posts(direct) == [post.text]
    assert served.messages()[0]["message"] == "from a member"


def test_a_channel_a_thread_and_a_direct_chat_are_three_places(served: ServedDiscord) -> None:
    fake = served.fake
    for chat in (CHANNEL, THREAD):
        served.allow(chat)
    direct = fake.direct_chat(served.member)
    for chat in (CHANNEL, THREAD, direct):
        fake.say(chat, served.member, f"from {chat}")
    eventually(lambda: len(served.messages()) == 3, "three messages")
    for _ in range(3):
        served.answer("the answer")
    for chat in (CHANNEL, THREAD, direct):
        eventually(lambda: bool(fake.posts(chat)), f"the answer in {chat}")  # noqa: B023
        assert fake.posts(chat) == ["the answer"]


def test_a_deleted_message_that_waits_is_cancelled(served: ServedDiscord) -> None:
    fake = served.fake
    message = fake.say(fake.direct_chat(served.member), served.member, "do not")
    eventually(lambda: len(served.messages()) == 1, "stored")
    fake.delete(message)
    eventually(lambda: served.messages()[0]["status"] == "cancelled", "cancelled")


def test_a_file_of_a_member_is_stored_and_one_of_a_stranger_is_never_fetched(
    served: ServedDiscord,
) -> None:
    fake = served.fake
    files = [("notes.txt", b"what to do")]
    fake.say(fake.direct_chat(served.stranger), served.stranger, "read", files=files)
    fake.say(fake.direct_chat(served.member), served.member, "read", files=files)
    stored = served.store.settings.files
    eventually(lambda: any("notes" in each.name for each in stored.glob("*")), "the file")
    (kept,) = (each for each in stored.glob("*notes*"))
    assert kept.read_bytes() == b"what to do"
    [fetched] = fake.requests("GET /attachments/*")
    assert "authorization" not in fetched.headers


def test_what_people_wrote_while_it_was_stopped_is_taken_in_once_everywhere(
    stopped: ServedDiscord,
) -> None:
    fake = stopped.fake
    for chat in (CHANNEL, THREAD):
        stopped.allow(chat)
    chats = (CHANNEL, THREAD, fake.direct_chat(stopped.member))
    with serving(stopped):
        for chat in chats:
            fake.say(chat, stopped.member, "before")
        eventually(lambda: len(stopped.messages()) == 3, "stored")
    fake.expire_sessions()
    for chat in chats:
        for number in range(3):
            fake.say(chat, stopped.member, f"{chat} {number}")
    fake.say(CHANNEL, stopped.member, "not for the bot", mention=False)
    with serving(stopped):
        eventually(lambda: len(stopped.messages()) >= 12, "all are stored")
        fake.say(CHANNEL, stopped.member, "after")
        eventually(lambda: len(stopped.messages()) == 13, "and the next")
    for chat in chats:
        texts = [each["message"] for each in stopped.messages() if chat in each["message"]]
        assert texts == [f"{chat} {number}" for number in range(3)]


def test_a_channel_that_the_bot_knows_is_told_as_closed_and_no_other(served: ServedDiscord) -> None:
    fake = served.fake
    served.allow(THREAD)
    for chat in (CHANNEL, THREAD):
        fake.push("CHANNEL_DELETE", dict(fake.channels[chat]))
    eventually(
        lambda: any("is closed" in each["message"] for each in rows(served.store, RESPONSES)),
        "the owner is told",
    )
    told = [each["message"] for each in rows(served.store, RESPONSES)]
    assert len(told) == 1
    assert "#release (Home)" in told[0]


def test_the_names_of_chats_are_kept(served: ServedDiscord) -> None:
    fake = served.fake
    served.allow(CHANNEL)
    fake.say(CHANNEL, served.member, "hello")
    eventually(lambda: len(served.messages()) == 1, "stored")
    names = {each["chat"]: each["name"] for each in rows(served.store, CHATS)}
    assert names[CHANNEL] == "#general (Home)"
