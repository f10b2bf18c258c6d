"""The database: away, damaged, of another version, or kept from work."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from bullpen.core.message import NewMessage
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.lanes import create_lane
from bullpen.core.store import open
from bullpen.ops.doctor import database
from tests.cli.command import Bullpen
from tests.doctor.examined import (
    checks,
    fine,
    fixed,
    found,
    hurried,
    look_at,
    seen,
    settings_of,
    store_of,
)
from tests.later_revision import as_later

READS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM messages").fetchone()
print("reads", flush=True)
sys.stdin.read()
"""


@contextmanager
def reader(file: Path) -> Iterator[int]:
    """A process that holds a reading transaction open; gives its id."""
    with subprocess.Popen(
        [sys.executable, "-c", READS, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"reads\n"
        yield process.pid


def fill(bullpen: Bullpen, count: int, size: int) -> None:
    """So many messages of this size."""
    with store_of(bullpen) as store, store.write() as tx:
        create_lane(tx, "coder")
        for _ in range(count):
            enqueue(tx, NewMessage(agent="coder", message="x" * size, sender="ann"))


def damage(file: Path) -> None:
    """Overwrite pages in the middle."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = file.stat().st_size
    with file.open("r+b") as data:
        for at in range(8192, size, 3 * 4096):
            data.seek(at)
            data.write(b"\xa5" * 2048)


def test_a_database_that_is_gone(bullpen: Bullpen) -> None:
    (bullpen.home / "bullpen.db").unlink()
    (bullpen.home / "token").write_text("bp_" + "x" * 40)
    assert "ran here before" in found(bullpen, "db.missing", "warning")
    assert not (bullpen.home / "bullpen.db").exists()


def test_a_server_that_is_away_and_all_else_is_looked_at(bullpen: Bullpen) -> None:
    url = "postgresql://ann:hunter2secret@127.0.0.1:1/none"
    bullpen.home.chmod(0o755)
    said = bullpen("doctor", BULLPEN_DATABASE_URL=url)
    assert said.status == 1
    assert "hunter2secret" not in said.out + said.err
    away = checks(bullpen, BULLPEN_DATABASE_URL=url)
    assert away["db.unreachable"]["state"] == "found"
    assert away["fs.home_perms"]["state"] == "found"
    assert away["queue.held"]["state"] == "unknown"
    assert "cannot connect" in away["queue.held"]["text"]


@pytest.mark.parametrize(
    "url", ["nonsense", "mysql://ann:hunter2secret@host/x", "sqlite:////proc/none/x.db"]
)
def test_an_address_that_is_none(bullpen: Bullpen, url: str) -> None:
    said = bullpen("doctor", "--json", BULLPEN_DATABASE_URL=url)
    assert "hunter2secret" not in said.out + said.err
    by_id = {each["id"]: each["state"] for each in said.json["checks"]}
    assert "found" in (by_id["db.unreachable"], by_id["db.missing"])


def test_a_file_that_is_no_database(bullpen: Bullpen) -> None:
    (bullpen.home / "bullpen.db").write_bytes(b"this is no database at all\n" * 500)
    assert "not a database" in found(bullpen, "db.unreachable", "critical")
    assert seen(bullpen, "queue.dead_letters")["state"] == "unknown"
    assert bullpen("doctor").status == 1


def test_a_damaged_database_and_all_else_is_looked_at(bullpen: Bullpen) -> None:
    fill(bullpen, 200, 2000)
    fine(bullpen, "db.integrity")
    damage(bullpen.home / "bullpen.db")
    all_ = checks(bullpen)
    assert "found" in (all_["db.integrity"]["state"], all_["db.unreachable"]["state"])
    assert all_["fs.home_perms"]["state"] == "ok"
    assert bullpen("doctor").status == 1


def test_an_index_that_lost_a_row_is_found_by_a_close_look(bullpen: Bullpen) -> None:
    fill(bullpen, 20, 10)
    with closing(sqlite3.connect(bullpen.home / "bullpen.db")) as connection:
        # As a crash of the machine leaves it where the disk lied about what was written.
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'WHERE', 'WHERE 1 = 0 AND')"
            " WHERE type = 'index' AND tbl_name = 'messages' AND sql LIKE '%WHERE%'"
        )
        connection.commit()
    assert seen(bullpen, "db.integrity_full")["state"] == "skipped"
    assert "damaged" in found(bullpen, "db.integrity_full", "critical", "--deep")


def test_a_database_of_an_older_version_is_copied_and_upgraded(
    on_both: Bullpen, tmp_path: Path
) -> None:
    on_both.ok("agent", "add", "coder")
    later = as_later(on_both, tmp_path)
    text = found(later, "db.schema", "critical")
    assert open.HEAD_REVISION in text
    assert seen(later, "queue.held")["state"] == "unknown"
    plan = later("doctor", "--fix", "--dry-run", "--only", "db.schema")
    assert "after a backup" in plan.err
    assert found(later, "db.schema", "critical") == text
    fixed(later, "db.schema")
    assert any((on_both.home / "backups").iterdir())
    assert "coder" in later.ok("agent", "list").out


def test_a_database_of_a_checkout_before_the_first_release_cannot_be_fixed(
    bullpen: Bullpen,
) -> None:
    with closing(sqlite3.connect(bullpen.home / "bullpen.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0005'")
    assert "0005" in found(bullpen, "db.schema", "critical")
    entry = seen(bullpen, "db.schema")
    assert (entry["fixable"], entry["remedy"]) == (False, open.UNRELEASED_HINT)


def test_an_empty_database_needs_no_copy(empty: Bullpen) -> None:
    with closing(sqlite3.connect(empty.home / "bullpen.db")):
        (empty.home / "bullpen.db").touch(0o600)
    assert "empty" in found(empty, "db.schema", "critical")
    fixed(empty, "db.schema")
    assert not (empty.home / "backups").exists()


def test_a_database_of_a_later_version_is_left_alone(bullpen: Bullpen) -> None:
    with closing(sqlite3.connect(bullpen.home / "bullpen.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    found(bullpen, "db.schema", "critical")
    assert seen(bullpen, "db.schema")["fixable"] is False


def test_a_table_that_somebody_changed(bullpen: Bullpen) -> None:
    with closing(sqlite3.connect(bullpen.home / "bullpen.db")) as connection:
        connection.execute("ALTER TABLE agents ADD COLUMN mine TEXT")
    assert "mine" in found(bullpen, "db.drift", "warning", "--deep")


def test_a_reader_that_does_not_end_is_named(bullpen: Bullpen) -> None:
    fill(bullpen, 1, 1)
    fine(bullpen, "db.oldest_reader")
    with reader(bullpen.home / "bullpen.db") as pid:
        assert f"process {pid}" in found(bullpen, "db.oldest_reader", "warning")
    fine(bullpen, "db.oldest_reader")


def test_a_log_that_has_grown_is_moved_once_nobody_reads(bullpen: Bullpen) -> None:
    small = Bullpen(bullpen.home, {**bullpen.environ, "BULLPEN_WAL_BYTES": "10000"})
    file = bullpen.home / "bullpen.db"
    fill(bullpen, 1, 1)
    with closing(sqlite3.connect(file)) as open_, reader(file):
        open_.execute("SELECT 1 FROM messages").fetchone()
        with store_of(bullpen) as store, store.write() as tx:
            for _ in range(200):
                enqueue(tx, NewMessage(agent="coder", message="x" * 2000, sender="ann"))
        found(small, "db.wal_size", "warning")
        tried = small("doctor", "--fix", "--yes", "--only", "db.wal_size", "--json")
        assert "oldest_reader" in tried.json["fixed"][0]["error"]
        assert tried.status == 3
    with closing(sqlite3.connect(file)) as open_:
        open_.execute("SELECT 1 FROM messages").fetchone()
        with store_of(bullpen) as store, store.write() as tx:
            for _ in range(200):
                enqueue(tx, NewMessage(agent="coder", message="x" * 2000, sender="ann"))
        found(small, "db.wal_size", "warning")
        fixed(small, "db.wal_size")


@pytest.mark.postgres
def test_a_transaction_that_is_open_for_long_on_a_server(
    on_both: Bullpen, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "sqlite":
        return
    fine(on_both, "db.oldest_reader")
    url = settings_of(on_both).database_url.replace("+psycopg", "")
    with psycopg.connect(url, application_name="a_report") as open_:
        open_.execute("SELECT 1")
        fine(on_both, "db.oldest_reader")
        # A minute is long for a test.
        monkeypatch.setattr(database, "LONG_TRANSACTION_MS", -1)
        said = look_at(on_both, database.oldest_reader)
    assert said.state == "found"
    assert "a_report" in said.text


def test_it_says_that_it_is_busy_and_does_not_wait(bullpen: Bullpen) -> None:
    with closing(sqlite3.connect(bullpen.home / "bullpen.db", isolation_level=None)) as locked:
        locked.execute("PRAGMA journal_mode = DELETE")
        locked.execute("BEGIN EXCLUSIVE")
        assert "locked" in found(hurried(bullpen), "db.unreachable", "critical")
