"""Telegram served by the client, with a database: what is special about this platform."""

from __future__ import annotations

import base64
import json
import time

from tests.channels.fakes.telegram import FakeTelegram
from tests.channels.telegram.double import CHAT, GROUP, PERSON
from tests.channels.telegram.served import serving
from tests.ports import free_port
from tests.processor.working import eventually
from tests.stores import Stores

FILES = [(f"{name}.txt", base64.b64encode(f"file {name}".encode()).decode()) for name in "abc"]


def test_an_answer_stays_in_its_topic(stores: Stores, fake: FakeTelegram) -> None:
    with serving(stores, fake) as served:
        served.let_in()
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
        claimed = 0

        def due() -> bool:
            nonlocal claimed
            claimed = served.claim()
            return claimed > 0

        eventually(due, "they are due")
        assert claimed == 3, "one batch"


def test_a_response_follows_a_group_that_became_a_supergroup(
    stores: Stores, fake: FakeTelegram
) -> None:
    new = "-1002000000002"
    with serving(stores, fake) as served:
        served.let_in()
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
        assert served.claim() == 1
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
        assert served.claim() == 1
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


def test_an_account_that_is_down_is_not_tried_again_because_of_a_commit(
    stores: Stores, fake: FakeTelegram
) -> None:
    with serving(stores, fake) as served:
        fake.revoked = True
        fake.drop_connections()
        eventually(lambda: served.state() == ["down", "token_refused"], "telegram is down")
        asked = len(fake.requests("POST */getMe"))
        for _ in range(5):
            served.respond("waits")
            time.sleep(0.1)  # the time for a wrong start
        assert len(fake.requests("POST */getMe")) == asked
        assert {each["status"] for each in served.responses()} == {"pending"}
