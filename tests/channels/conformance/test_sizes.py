"""What is too large: a text of a person, and a file of an agent, are refused in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bullpen.core.settings import Settings
from tests.channels.conformance.conftest import Account, account
from tests.channels.conformance.kinds import Kind
from tests.channels.served import AGENT
from tests.processor.working import eventually
from tests.stores import Stores

MESSAGE_BYTES = 1_000
LARGE_BYTES = (1 << 30) + 1
"""More than any platform takes; the file is sparse."""


@pytest.fixture
def strict(stores: Stores, settings: Settings, channel: Kind) -> Iterator[Account]:
    """A connected account whose messages have at most 1 000 bytes."""
    with account(stores, replace(settings, message_bytes=MESSAGE_BYTES), channel) as made:
        made.start()
        made.up()
        yield made


def test_cve_2026_14626_a_text_that_is_too_long_is_refused_in_words(strict: Account) -> None:
    id_ = strict.say("word " * MESSAGE_BYTES)
    eventually(lambda: bool(strict.posts()), "the refusal")
    (refusal,) = strict.posts()
    assert "was not accepted" in refusal
    assert "1000" in refusal or "1,000" in refusal, refusal
    strict.platform.redeliver(id_)
    strict.say("a short one")
    strict.stored("a short one")
    assert len(strict.posts()) == 1
    eventually(lambda: strict.platform.is_acked(id_), "it does not come again for ever")


def test_a_file_that_is_too_large_for_the_platform_is_said_in_words(served: Account) -> None:
    place = served.store.settings.workspace / AGENT
    place.mkdir(parents=True, exist_ok=True)
    with (place / "film.bin").open("wb") as file:
        file.truncate(LARGE_BYTES)
    id_ = served.respond("see the file", files=(str(place / "film.bin"),))
    next_ = served.respond("next")
    served.ends(id_, "acked")
    served.ends(next_, "acked")
    text, refusal, following = served.posts()
    assert (text, following) == ("see the file", "next")
    assert "film.bin" in refusal
    assert "MB" in refusal
    assert not any(each.file for each in served.platform.parts(served.direct()))
