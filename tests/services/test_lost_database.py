"""A database that vanished, was emptied or is damaged is noticed, and never silently made anew."""

from __future__ import annotations

import json
import sqlite3
import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from bullpen.core.errors import StoreCorrupt, StoreMissing
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.core.store.sqlite import LOOK_SECONDS
from tests.cli.command import Bullpen
from tests.crash.disk import put
from tests.crash.work import open_lanes
from tests.services.running import of_home
from tests.stores import Stores

FILES = ("bullpen.db", "bullpen.db-wal", "bullpen.db-shm", "bullpen.db-turn")


def lose(home: Path, way: str) -> None:
    """Remove the database, or empty it."""
    for name in FILES:
        (home / name).unlink(missing_ok=True)
    if way == "emptied":
        (home / "bullpen.db").touch()


@pytest.mark.slow
def test_up_refuses_a_home_whose_database_is_lost_until_a_person_decides(empty: Bullpen) -> None:
    empty.ok("up")
    empty.ok("down")
    for way in ("removed", "emptied"):
        lose(empty.home, way)
        for command in (("up",), ("db", "upgrade"), ("send", "hello", "--no-wait")):
            refused = empty(*command)
            assert refused.status == 1, (way, refused)
            assert "the database" in refused.err
            assert "bullpen db restore" in refused.err
            assert "--new-database" in refused.err
        assert of_home(empty.home) == []
        doctor = empty("doctor", "--json")
        said = json.dumps(doctor.json)
        assert "bullpen db restore" in said, way
        assert doctor.status != 0
    assert "Created the database." in empty.ok("up", "--new-database").err
    empty.ok("down")
    assert "made" not in empty.ok("up").err


@pytest.mark.slow
def test_a_message_is_not_accepted_into_a_removed_file(up: Bullpen) -> None:
    token = (up.home / "token").read_text().strip()
    request = urllib.request.Request(
        f"http://127.0.0.1:{up.environ['BULLPEN_API_PORT']}/api/message",
        data=b'{"message": "hello"}',
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200
    lose(up.home, "removed")
    time.sleep(LOOK_SECONDS)
    for _ in range(3):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)
        assert refused.value.code == 503
        assert json.loads(refused.value.read())["code"] == "store_missing"
    assert not (up.home / "bullpen.db").exists()


def test_a_file_that_was_replaced_while_it_is_open_is_refused(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    with stores.opened(settings) as store:
        open_lanes(store)
        put(store, 0)
        path = settings.home / "bullpen.db"
        kept = path.rename(settings.home / "kept.db")
        path.write_bytes(stores.sqlite_template().read_bytes())
        time.sleep(LOOK_SECONDS)
        with pytest.raises(StoreMissing, match="replaced"):
            put(store, 1)
        with pytest.raises(StoreMissing, match="replaced"), store.read():
            pass
        kept.replace(path)
        put(store, 1)


def test_a_text_that_is_not_utf8_is_a_damaged_database(stores: Stores) -> None:
    settings: Settings = stores.settings("sqlite")
    with stores.opened(settings) as store:
        open_lanes(store)
        put(store, 0)
    with closing(sqlite3.connect(settings.home / "bullpen.db")) as connection:
        connection.execute("UPDATE messages SET message = CAST(x'ff736563726574' AS TEXT)")
        connection.commit()
    with (
        closing(open_store(settings)) as store,
        pytest.raises(StoreCorrupt) as damaged,
        store.read() as tx,
    ):
        tx.fetch("SELECT message FROM messages")
    assert "secret" not in str(damaged.value)
    assert damaged.value.hint


@pytest.mark.slow
def test_up_tells_of_a_damaged_page(empty: Bullpen) -> None:
    empty.ok("up")
    empty.ok("down")
    path = empty.home / "bullpen.db"
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'audit_log'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\x55" * size)
    said = empty("up").err
    assert "The database is damaged" in said
    assert "bullpen db restore" in said
