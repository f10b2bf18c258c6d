"""Telegram served by the client, with a database: what is special about this platform."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from bullpen.channels import client
from bullpen.channels.failures import ChannelDown, SendFailed
from bullpen.channels.telegram import polling
from tests.channels.fakes.telegram import FakeTelegram
from tests.channels.telegram.double import CHAT, GROUP, PERSON, ask_updates, started
from tests.channels.telegram.served import serving
from tests.ports import free_port
from tests.processor.working import eventually
from tests.stores import Stores

FILES = [(f"{name}.txt", base64.b64encode(f"file {name}".encode()).decode()) for name in "abc"]


def test_an_answer_stays_in_its_topic(stores: Stores, fake: FakeTelegram) -> None:
    with serving(stores, fake) as served:
        served.allow(GROUP)
        fake.say(GROUP, PERSON, "@coder in the topic", mention=True, thread="42")
        served.stored("in the topic")
        served.answer("here")
        eventually(lambda: fake.posts(GROUP) == ["here"], "the answer")
        (post,) = fake.parts(GROUP)
        assert post.thread == "42"
        assert post.reply_to


def test_an_album_is_answered_once_with_all_of_its_files(
    stores: Stores, fake: FakeTelegram
) -> None:
    with serving(stores, fake) as served:
        fake.say(CHAT, PERSON, "what is in these?", files=FILES)
        eventually(
            lambda: (
                [len(json.loads(each["files"] or "[]")) for each in served.messages()] == [1, 1, 1]
            ),
            "three messages with a file each",
        )
        assert len(served.claim().messages) == 3, "one batch"


def test_a_response_follows_a_group_that_became_a_supergroup(
    stores: Stores, fake: FakeTelegram
) -> None:
    new = "-1002000000002"
    with serving(stores, fake) as served:
        served.allow(GROUP)
        fake.say(GROUP, PERSON, "hello", mention=True)
        served.stored("hello")
        fake.migrate(GROUP, new, quietly=True)
        served.answer("from before")
        eventually(lambda: fake.posts(new) == ["from before"], "the answer in the new group")
        fake.say(new, PERSON, "hello again", mention=True)
        served.stored("hello", "hello again")


def test_a_response_to_a_person_who_has_blocked_the_bot_is_dead(
    stores: Stores, fake: FakeTelegram
) -> None:
    with serving(stores, fake) as served:
        fake.say(CHAT, PERSON, "hello")
        served.stored("hello")
        fake.block(CHAT)
        served.respond("are you there?")
        eventually(
            lambda: any(
                each["status"] == "dead" and "blocked" in each["last_error"]
                for each in served.responses()
            ),
            "the response is dead",
        )


def test_an_edit_of_what_is_being_processed_is_run_by_its_button(
    stores: Stores, fake: FakeTelegram
) -> None:
    with serving(stores, fake) as served:
        message = fake.say(CHAT, PERSON, "helo")
        served.stored("helo")
        assert len(served.claim().messages) == 1
        fake.edit(CHAT, message, "hello")
        eventually(lambda: bool(fake.parts(CHAT)), "the offer")
        (offer,) = fake.parts(CHAT)
        (button,) = offer.buttons
        query = fake.press(CHAT, PERSON, offer.id, str(button["callback_data"]))
        served.stored("helo", "hello")
        eventually(lambda: fake.answered == [query], "the button stops spinning")


def test_progress_is_a_draft_while_a_message_is_processed_and_no_message(
    stores: Stores, fake: FakeTelegram
) -> None:
    with serving(stores, fake) as served:
        fake.say(CHAT, PERSON, "hello")
        served.stored("hello")
        assert len(served.claim().messages) == 1
        eventually(lambda: any("coder is working" in text for _, text in fake.shown), "the draft")
        assert not fake.parts(CHAT)


def test_a_webhook_serves_as_well_as_polling(stores: Stores, fake: FakeTelegram) -> None:
    port = free_port()
    changes = {
        "transport": "webhook",
        "webhook_secret": "secret",
        "public_url": f"http://127.0.0.1:{port}",
        "port": str(port),
    }
    with serving(stores, fake, **changes) as served:
        texts = [f"message {each}" for each in range(20)]
        for each in texts:
            fake.say(CHAT, PERSON, each)
        served.stored(*texts)
        served.stop()
        fake.say(CHAT, PERSON, "while it was stopped")
        served.start()
        served.up()
        served.stored(*texts, "while it was stopped")
        served.respond("done")
        eventually(lambda: fake.posts(CHAT) == ["done"], "the answer")
    assert not fake.requests("POST */getUpdates")


def test_a_file_of_a_stranger_is_never_asked_for(stores: Stores, fake: FakeTelegram) -> None:
    with serving(stores, fake) as served:
        fake.say("1009", 1009, "look", files=FILES)
        fake.say(CHAT, PERSON, "after")
        served.stored("after")
    assert not fake.requests("POST */getFile")
    assert not fake.requests("GET /file/*")


def test_two_processes_that_poll_one_bot_are_one_fault_of_which_the_owner_is_told_once(
    stores: Stores, fake: FakeTelegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ends the requests of the other, and is answered for a moment in between."""
    monkeypatch.setattr(client, "DOWN_SECONDS", (0.3, 0.3, 0.3))
    monkeypatch.setattr(polling, "CONFLICT_SECONDS", 0.1)
    monkeypatch.setattr(polling, "CONTESTED_MS", 2_000)
    monkeypatch.setattr(polling, "CONTESTED_POLL_SECONDS", 1)
    with serving(stores, fake) as served:

        def told() -> list[str]:
            return [each["message"] for each in served.responses() if each["channel"] == "cli"]

        with polled_by_another(fake):
            eventually(lambda: served.state() == ("down", "conflict"), "telegram is down")
            asked = len(fake.requests("POST */getMe"))
            eventually(lambda: len(fake.requests("POST */getMe")) > asked + 4, "further attempts")
            (down,) = told()
            assert "another process polls" in down
        eventually(lambda: served.state()[0] == "up", "telegram is up")
        fake.say(CHAT, PERSON, "after")
        served.stored("after")
        eventually(lambda: len(told()) == 2, "the owner is told")
        assert "is up again" in told()[1]


@contextmanager
def polled_by_another(fake: FakeTelegram) -> Iterator[None]:
    """Another process polls the bot meanwhile, again a moment after each conflict."""
    ending = threading.Event()

    async def poll() -> None:
        async with started(fake) as other:
            while not ending.is_set():
                with suppress(ChannelDown, SendFailed):
                    await ask_updates(other, 1, offset=1)
                await asyncio.sleep(0.7)

    thread = threading.Thread(target=lambda: asyncio.run(poll()))
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def test_an_account_that_is_down_is_not_tried_again_because_of_a_commit(
    stores: Stores, fake: FakeTelegram
) -> None:
    with serving(stores, fake) as served:
        fake.revoked = True
        fake.drop_connections()
        eventually(lambda: served.state() == ("down", "token_refused"), "telegram is down")
        asked = len(fake.requests("POST */getMe"))
        for _ in range(5):
            served.respond("waits")
            time.sleep(0.1)  # the time for a wrong start
        assert len(fake.requests("POST */getMe")) == asked
        assert {each["status"] for each in served.responses()} == {"pending"}
