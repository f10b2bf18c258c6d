"""Progress: what a run does is told as it goes, and not too often."""

from __future__ import annotations

import json
import logging

import pytest

from bullpen.core.errors import StoreBusy
from bullpen.core.store.base import Store
from bullpen.processor.progress import INTERVAL, LENGTH, Progress
from tests.conformance.verbs import events
from tests.outbox.outgoing import asked


class Watch:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _told(store: Store) -> list[str]:
    return [json.loads(row["data"])["text"] for row in events(store, "agent_progress")]


def test_the_first_is_told_at_once_and_the_next_together(store: Store) -> None:
    watch = Watch()
    progress = Progress(store, asked("m1"), watch)
    progress("one")
    progress("two")
    watch.now += INTERVAL - 0.01
    progress("three")
    assert _told(store) == ["one"]
    watch.now += 0.01
    progress("four")
    assert _told(store) == ["one", "two\nthree\nfour"]
    progress("five")
    progress.flush()
    progress.flush()
    assert _told(store)[2:] == ["five"]


def test_it_is_told_of_its_message(store: Store) -> None:
    Progress(store, asked("m1"))("one")
    (event,) = events(store, "agent_progress")
    assert (event["agent"], event["message_id"], event["conversation_id"]) == ("coder", "m1", "m1")


def test_of_much_the_end_is_told_and_what_cannot_be_kept_is_replaced(store: Store) -> None:
    progress = Progress(store, asked("m1"))
    progress("x" * 10 * LENGTH + "a\0b\ud800c")
    (text,) = _told(store)
    assert len(text) == LENGTH
    assert text.endswith("xa\N{REPLACEMENT CHARACTER}b?c")


def test_a_run_goes_on_when_its_progress_cannot_be_told(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def busy(*, durable: bool) -> None:
        raise StoreBusy("the database is locked")

    progress = Progress(store, asked("m1"))
    with monkeypatch.context() as locked, caplog.at_level(logging.WARNING):
        locked.setattr(store, "write", busy)
        progress("one")
    assert "is not shown" in caplog.text
    progress("two")
    progress.flush()
    assert _told(store) == ["two"]
