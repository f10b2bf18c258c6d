"""Progress: what runs do is told as they go, and not too often."""

from __future__ import annotations

import json
import logging
import threading

import pytest

from bullpen.core.errors import StoreBusy
from bullpen.core.store.base import Store
from bullpen.processor.progress import (
    IDLE_SECONDS,
    MAX_PROGRESS_CHARS,
    PROGRESS_SECONDS,
    ProgressBoard,
)
from tests.conformance.verbs import events
from tests.outbox.outgoing import asked
from tests.processor.watch import Watch
from tests.processor.working import eventually


def _told(store: Store) -> list[str]:
    return [json.loads(row["data"])["text"] for row in events(store, "agent_progress")]


def test_the_first_is_told_at_once_and_the_next_together(store: Store) -> None:
    watch = Watch()
    board = ProgressBoard(store, watch)
    progress = board.open(asked("m1"))
    progress("one")
    assert board.step() == PROGRESS_SECONDS
    progress("two")
    watch.now += PROGRESS_SECONDS - 0.1
    progress("three")
    assert board.step() == pytest.approx(0.1)
    assert _told(store) == ["one"]
    watch.now += 0.1
    progress("four")
    assert board.step() == PROGRESS_SECONDS
    assert _told(store) == ["one", "two\nthree\nfour"]
    watch.now += PROGRESS_SECONDS
    assert board.step() == IDLE_SECONDS
    progress("five")
    board.close(progress)
    assert _told(store)[2:] == ["five"]


def test_all_runs_are_told_of_in_one_go_each_of_its_message(store: Store) -> None:
    board = ProgressBoard(store)
    for name in ("m1", "m2"):
        board.open(asked(name))(f"{name} goes on")
    board.step()
    assert [row["message_id"] for row in events(store, "agent_progress")] == ["m1", "m2"]
    assert _told(store) == ["m1 goes on", "m2 goes on"]


def test_of_much_the_end_is_told_and_what_cannot_be_kept_is_replaced(store: Store) -> None:
    board = ProgressBoard(store)
    board.open(asked("m1"))("x" * 10 * MAX_PROGRESS_CHARS + "a\0b\ud800c")
    board.step()
    (text,) = _told(store)
    assert len(text) == MAX_PROGRESS_CHARS
    assert text.endswith("xa\N{REPLACEMENT CHARACTER}b?c")


def test_a_run_goes_on_when_its_progress_cannot_be_told(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def busy(*, durable: bool) -> None:
        raise StoreBusy("the database is locked")

    board = ProgressBoard(store)
    progress = board.open(asked("m1"))
    with monkeypatch.context() as locked, caplog.at_level(logging.WARNING):
        locked.setattr(store, "write", busy)
        progress("one")
        board.step()
    assert "cannot store the progress" in caplog.text
    progress("two")
    board.close(progress)
    assert _told(store) == ["two"]


def test_who_says_it_never_waits_for_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """claude throws away what nobody reads from it at once."""
    asked_for, let_go = threading.Event(), threading.Event()
    write = store.write

    def slow(*, durable: bool) -> object:
        asked_for.set()
        assert let_go.wait(60)
        return write(durable=durable)

    monkeypatch.setattr(store, "write", slow)
    board = ProgressBoard(store)
    board.loop.start()
    progress = board.open(asked("m1"))
    progress("one")
    assert asked_for.wait(60)
    progress("two")  # while the first is still being written
    let_go.set()
    eventually(lambda: _told(store) == ["one", "two"], "both are told")
    board.loop.stop()
