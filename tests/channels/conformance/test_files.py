"""Files of people's messages: authorised, bounded, fetched, and never at the cost of the text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.core.settings import Settings
from tests.channels.conformance.conftest import MEMBERS, Account, account
from tests.channels.conformance.kinds import KINDS, Kind
from tests.channels.conformance.test_kills import child
from tests.channels.fakes.base import FakePlatform
from tests.channels.fakes.faults import Fault
from tests.conformance.verbs import texts_of
from tests.processor.working import eventually
from tests.stores import Stores

PNG = b"\x89PNG\r\n\x1a\n" + bytes(1000)
LIMIT = 50_000


@pytest.fixture
def small(stores: Stores, settings: Settings, channel: Kind) -> Iterator[Account]:
    """A connected account that takes in files of at most 50 000 bytes."""
    with account(stores, settings, channel, max_file_bytes=str(LIMIT)) as made:
        made.start()
        made.up()
        yield made


def contents(account: Account) -> list[bytes]:
    """The stored files of all messages."""
    files = [each for row in account.messages() for each in json.loads(row["files"] or "[]")]
    return [Path(each).read_bytes() for each in files]


def all_ready(account: Account, count: int) -> None:
    """Wait until so many messages are stored, and none of them waits for files."""
    eventually(lambda: len(account.messages()) == count, f"{count} messages")
    eventually(lambda: all(each["ready"] for each in account.messages()), "no message waits")


def test_the_files_of_a_message_are_stored_and_its_text_is_unchanged(small: Account) -> None:
    small.say("look at these", files=[("photo.png", PNG), ("notes.txt", b"some notes")])
    eventually(lambda: len(contents(small)) == 2, "both files")
    eventually(lambda: all(each["ready"] for each in small.messages()), "no message waits")
    assert sorted(contents(small)) == sorted([PNG, b"some notes"])
    texts = [each["message"] for each in small.messages() if each["message"]]
    assert texts == ["look at these"]
    assert small.posts() == []


def test_a_file_that_is_too_large_is_refused_in_words_and_the_rest_is_kept(
    small: Account,
) -> None:
    small.say("two files", files=[("large.png", PNG * 200), ("photo.png", PNG)])
    eventually(lambda: small.posts() != [], "the sender is notified")
    eventually(lambda: all(each["ready"] for each in small.messages()), "no message waits")
    (notice,) = small.posts()
    assert "was not accepted: " in notice
    assert contents(small) == [PNG]
    text = "\n".join(each["message"] for each in small.messages())
    assert "two files" in text
    assert "was not accepted: " in text


def test_c6_the_files_of_an_unpaired_sender_are_never_fetched(small: Account) -> None:
    small.say("let me in", number=MEMBERS + 1, files=[("photo.png", PNG)])
    eventually(lambda: small.posts(small.direct(MEMBERS + 1)) != [], "a pairing code")
    small.say("hello")  # handled after it
    small.stored("hello")
    assert not list(small.store.settings.files.glob("**/*"))


def test_a_text_below_a_photo_is_answered_together_with_it(small: Account) -> None:
    small.say("", files=[("photo.png", PNG)])
    small.say("what is this?")
    all_ready(small, 2)
    assert texts_of(small.claim()) == ["", "what is this?"]
    assert contents(small) == [PNG]


def test_kill_9_while_a_file_is_fetched_costs_neither_the_text_nor_the_file(
    stores: Stores, settings: Settings
) -> None:
    with account(stores, settings, KINDS["telegram"]) as served:
        fake = vars(served.platform)["fake"]
        assert isinstance(fake, FakePlatform)
        fake.fail(Fault.HANG, "GET */file/*", times=None)
        with child(served):
            served.say("look at this", files=[("photo.png", PNG)])
            fake.wait_for_request("GET */file/*", 1)
        (message,) = served.messages()
        assert not message["ready"]
        assert message["message"].startswith("look at this")
        fake.heal()
        with child(served):
            all_ready(served, 1)
        assert served.texts() == ["look at this"]
        assert contents(served) == [PNG]
