"""bullpen db, and what every command says of a database that it cannot work with."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bullpen.core.company import add_agent
from bullpen.core.roster.agents import Agent
from bullpen.core.store import open
from tests.cli.command import Bullpen
from tests.cli.open_store import direct
from tests.later_revision import LATER_REVISION, as_later
from tests.stores import Stores

ALL = [
    ("queue", "status"),
    ("send", "hello", "--no-wait"),
    ("queue", "cancel", "cli_a1b2c3d4"),
    ("run", "processor"),
    ("db", "check"),
]


def test_upgrade_makes_the_database_and_a_second_one_changes_nothing(empty: Bullpen) -> None:
    first = empty.ok("db", "upgrade")
    assert open.HEAD_REVISION in first.out
    assert "Created the database" in first.out
    before = (empty.home / "bullpen.db").read_bytes()
    again = empty.ok("db", "upgrade")
    assert "already" in again.out
    assert (empty.home / "bullpen.db").read_bytes() == before
    assert open.HEAD_REVISION in empty.ok("db", "check").out


@pytest.mark.postgres
def test_upgrade_and_check_work_on_postgresql(empty: Bullpen, stores: Stores) -> None:
    stores.server.create_database("cli_empty")
    there = Bullpen(empty.home, {"BULLPEN_DATABASE_URL": stores.server.url("cli_empty")})
    assert there("db", "check").status == 1
    there.ok("db", "upgrade")
    assert "already" in there.ok("db", "upgrade").out
    there.ok("db", "check")


def test_upgrade_keeps_what_is_in_the_database(bullpen: Bullpen) -> None:
    with sqlite3.connect(bullpen.home / "bullpen.db") as connection:
        connection.execute("INSERT INTO chat_messages VALUES (1, 't', 'a', 'hi', 0)")
    connection.close()
    bullpen.ok("db", "upgrade")
    connection = sqlite3.connect(bullpen.home / "bullpen.db")
    assert connection.execute("SELECT message FROM chat_messages").fetchall() == [("hi",)]
    connection.close()


@pytest.mark.parametrize(
    "change",
    ["DROP INDEX ix_messages_ready", "ALTER TABLE lanes ADD COLUMN extra TEXT"],
)
def test_check_fails_and_names_what_differs(bullpen: Bullpen, change: str) -> None:
    connection = sqlite3.connect(bullpen.home / "bullpen.db")
    connection.execute(change)
    connection.close()
    result = bullpen("db", "check")
    assert result.status == 1
    assert "differs" in result.err
    assert "ix_messages_ready" in result.err or "extra" in result.err


@pytest.mark.parametrize("args", ALL, ids=" ".join)
def test_an_empty_database_is_refused_with_the_command_that_makes_it(
    empty: Bullpen, args: tuple[str, ...]
) -> None:
    result = empty(*args)
    assert result.status == 1
    assert result.out == ""
    assert "the database does not exist yet" in result.err
    assert "bullpen db upgrade" in result.err


def test_a_command_in_a_home_that_does_not_exist_creates_nothing(empty: Bullpen) -> None:
    nowhere = Bullpen(empty.home / "nowhere")
    result = nowhere("agent", "list")
    assert result.status == 1
    assert "the database does not exist yet" in result.err
    assert "bullpen up" in result.err
    assert not nowhere.home.exists()


@pytest.mark.parametrize("args", ALL, ids=" ".join)
def test_a_database_of_a_later_version_is_refused(bullpen: Bullpen, args: tuple[str, ...]) -> None:
    connection = sqlite3.connect(bullpen.home / "bullpen.db")
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    result = bullpen(*args)
    assert result.status == 1
    assert "9999" in result.err
    assert "later" in result.err
    assert bullpen("db", "upgrade").status == 1


def test_a_file_that_is_no_database_is_said_to_be_none(empty: Bullpen) -> None:
    (empty.home / "bullpen.db").write_bytes(b"this is a letter, not a database\n" * 200)
    for args in (("queue", "status"), ("db", "upgrade")):
        result = empty(*args)
        assert result.status == 1
        assert "not a database" in result.err
        assert "backup" in result.err


def test_a_server_that_is_not_there_is_worth_another_try(empty: Bullpen) -> None:
    url = "postgresql://ann:hunter2@127.0.0.1:1/bullpen"
    result = empty("queue", "status", BULLPEN_DATABASE_URL=url)
    assert result.status == 75
    assert "database_url" in result.err
    assert "hunter2" not in result.err


def test_check_and_upgrade_have_one_document(bullpen: Bullpen) -> None:
    assert bullpen.ok("db", "check", "--json").json == {
        "revision": open.HEAD_REVISION,
        "good": True,
        "differences": [],
    }
    assert bullpen.ok("db", "upgrade", "--json").json == {
        "revision": open.HEAD_REVISION,
        "before": open.HEAD_REVISION,
        "backup": None,
    }
    connection = sqlite3.connect(bullpen.home / "bullpen.db")
    connection.execute("DROP INDEX ix_messages_ready")
    connection.close()
    found = bullpen("db", "check", "--json")
    assert found.status == 1
    assert "ix_messages_ready" in found.json["differences"][0]


def test_data_are_backed_up_before_they_are_upgraded(on_both: Bullpen, tmp_path: Path) -> None:
    with direct(on_both) as store, store.write() as tx:
        add_agent(tx, Agent(id="coder"))
    before = open.HEAD_REVISION
    later = as_later(on_both, tmp_path)
    told = later.ok("db", "upgrade")
    path = told.out.splitlines()[0].removeprefix("Created the backup ").removesuffix(".")
    assert f"from revision {before} to {LATER_REVISION}" in told.out
    found = on_both.ok("db", "verify", path, "--json").json
    assert (found["revision"], found["rows"]["agents"]) == (before, 1)
    later.ok("db", "check")
    assert later.ok("db", "upgrade", "--json").json["backup"] is None


def test_a_backup_before_an_upgrade_can_be_left_out_and_an_empty_one_needs_none(
    bullpen: Bullpen, tmp_path: Path
) -> None:
    file, old = bullpen.home / "bullpen.db", tmp_path / "old.db"
    shutil.copy(file, old)
    later = as_later(bullpen, tmp_path)
    assert later.ok("db", "upgrade", "--json").json["backup"] is None
    shutil.copy(old, file)
    with direct(bullpen) as store, store.write() as tx:
        add_agent(tx, Agent(id="coder"))
    upgraded = later.ok("db", "upgrade", "--no-backup", "--json").json
    assert (upgraded["before"], upgraded["backup"]) == (open.HEAD_REVISION, None)
    assert not (bullpen.home / "backups").exists()


def test_what_cannot_be_backed_up_is_not_upgraded(bullpen: Bullpen, tmp_path: Path) -> None:
    with direct(bullpen) as store, store.write() as tx:
        add_agent(tx, Agent(id="coder"))
    later = as_later(bullpen, tmp_path)
    (bullpen.home / "backups").write_text("in the way")
    refused = later("db", "upgrade")
    assert refused.status == 1
    assert "--no-backup" in refused.err
    assert open.HEAD_REVISION in later("db", "check").err


@pytest.mark.parametrize("args", [*ALL, ("db", "upgrade"), ("up",)], ids=" ".join)
def test_a_database_of_a_checkout_before_the_first_release_is_refused(
    bullpen: Bullpen, args: tuple[str, ...]
) -> None:
    with closing(sqlite3.connect(bullpen.home / "bullpen.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0005'")
    result = bullpen(*args)
    assert result.status == 1
    assert "revision 0005, which is older than the first release" in result.err
    assert "new home" in result.err
    assert not (bullpen.home / "backups").exists()
