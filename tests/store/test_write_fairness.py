"""Who has waited long to write goes first, and nobody waits for the dead."""

from __future__ import annotations

import multiprocessing
import sqlite3
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from bullpen.core.store import sqlite
from bullpen.core.store.sqlite import SqliteStore, WriteFairness
from tests.stores import Stores


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One for each time that somebody stood back."""
    taken: list[None] = []
    monkeypatch.setattr(sqlite, "sleep_before_retry", lambda: taken.append(None))
    return taken


def _ask(path: Path, pipe: Connection) -> None:
    mine = WriteFairness(path)
    mine.yield_to_priority()
    mine.request_priority()
    pipe.send("asked")
    pipe.recv()
    mine.release_priority()
    pipe.send("gone")
    pipe.recv()


def test_others_stand_back_while_one_asks_to_go_first(tmp_path: Path, naps: list[None]) -> None:
    path, mine = tmp_path / "turn", WriteFairness(tmp_path / "turn")
    here, there = multiprocessing.Pipe()
    other = multiprocessing.get_context("spawn").Process(target=_ask, args=(path, there))
    mine.yield_to_priority()
    assert not naps
    other.start()
    assert here.recv() == "asked"
    mine.yield_to_priority()
    assert len(naps) == 1
    here.send("go")
    assert here.recv() == "gone"
    mine.yield_to_priority()
    assert len(naps) == 1
    here.send("end")
    other.join()
    mine.close()


def test_one_who_was_killed_while_asking_holds_nobody_up(tmp_path: Path, naps: list[None]) -> None:
    path, mine = tmp_path / "turn", WriteFairness(tmp_path / "turn")
    here, there = multiprocessing.Pipe()
    other = multiprocessing.get_context("spawn").Process(target=_ask, args=(path, there))
    other.start()
    assert here.recv() == "asked"
    other.kill()
    other.join()
    mine.yield_to_priority()
    assert not naps
    mine.close()


def test_where_no_file_can_be_made_everybody_goes(tmp_path: Path, naps: list[None]) -> None:
    mine = WriteFairness(tmp_path / "missing" / "turn")
    mine.yield_to_priority()
    mine.request_priority()
    mine.release_priority()
    mine.close()
    assert not naps


def test_a_writer_that_waits_for_long_asks(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one lets go as soon as it is asked, and not before."""
    with stores.opened(stores.settings("sqlite")) as store:
        assert isinstance(store, SqliteStore)
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(WriteFairness, "request_priority", lambda _: other.rollback())
        with store.write() as tx:
            assert tx.fetch("SELECT 1") == (1,)
        other.close()
