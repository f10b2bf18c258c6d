"""First contact: people who write for the first time while Bullpen is stopped."""

from __future__ import annotations

import pytest

from bullpen.core.models import SENDERS
from tests.channels.conformance.conftest import MEMBERS, Account
from tests.conformance.verbs import rows
from tests.processor.working import eventually

STRANGER = MEMBERS + 3
NO_LIST = "Discord does not list the direct chats of a bot, as its page says"


def test_a_stranger_who_wrote_while_bullpen_was_stopped_gets_a_code(served: Account) -> None:
    if served.channel == "discord":
        pytest.skip(NO_LIST)
    served.say("before")
    served.stored("before")
    served.stop()
    served.say("hello, is anybody there?", STRANGER)
    served.start()
    chat = served.direct(STRANGER)
    eventually(lambda: len(served.posts(chat)) == 1, f"a code: {served.posts(chat)}")
    (sender,) = (
        each for each in rows(served.store, SENDERS) if each["sender_id"] == served.person(STRANGER)
    )
    assert str(sender["code"]) in served.posts(chat)[0]
    assert served.texts() == ["before"]


def test_a_paired_person_who_first_wrote_while_bullpen_was_stopped_is_answered(
    served: Account,
) -> None:
    if served.channel == "discord":
        pytest.skip(NO_LIST)
    served.say("before", 1)
    served.stored("before")
    served.stop()
    served.say("my first message", 2)
    served.start()
    served.stored("before", "my first message")
