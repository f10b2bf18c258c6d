"""restore: a new home with all that was, of which nothing is alive and nothing goes out."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from bullpen.core.access.keys import list_keys
from bullpen.core.clock import DAY
from bullpen.core.errors import (
    BackupFailed,
    BadBackup,
    BadSetting,
    InTheWay,
    SchemaTooNew,
    SchemaTooOld,
)
from bullpen.core.models import API_KEYS, LANES, MESSAGES, RESPONSES, SYSTEM_AGENTS, WORKERS
from bullpen.core.outbox.delivery import begin_part
from bullpen.core.outbox.hold import find_hold
from bullpen.core.settings import Settings
from bullpen.core.store import migrate, open
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.ops.backup.contents import MANIFEST_FILE, read_manifest
from bullpen.ops.backup.release_hold import release_hold
from bullpen.ops.backup.restore import restore
from tests.backup.homes import (
    UMLAUTS,
    everything,
    files_of,
    left_in,
    made_of,
    restore_until,
    store_of,
    take_backup,
)
from tests.backup.test_verify import flip, rewrite
from tests.conformance.verbs import done, events, rows, send, status, take, texts_of
from tests.crash.children import Children
from tests.later_revision import LATER_REVISION, LATER_TABLE, become_later
from tests.maintenance.election import enter_rota
from tests.outbox.outgoing import answer, lease, lease_one
from tests.store.test_migrations import fill, read
from tests.stores import START, FakeClock, Stores

CHANGED = {"lanes", "messages", "attempts", "events", "api_keys", "workers", "holds", "agents"}
"""What is not the same afterwards: what was alive, and what that left behind."""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, stores: Stores, tmp_path: Path) -> str:
    """Where a home is restored to: its own file, or an empty database."""
    if request.param == "sqlite":
        return ""
    name = f"restored_{tmp_path.name}".lower()[:60]
    stores.server.create_database(name)
    return stores.server.url(name)


@contextmanager
def restored(store: Store, tmp_path: Path, url: str = "", **more: bool) -> Iterator[Store]:
    """The store of a home that is made from a backup of this one."""
    path = take_backup(store, tmp_path / "b", workspace=more.pop("workspace", False)).backup.path
    made_of(path, tmp_path / "new", url, **more)
    with store_of(tmp_path / "new", url) as new:
        yield new


def test_every_row_is_as_it_was_whatever_either_database_is(
    store: Store, tmp_path: Path, url: str
) -> None:
    before = everything(store)
    with restored(store, tmp_path, url) as new:
        after = everything(new)
        for name in before.keys() - CHANGED - {"responses"}:
            assert after[name] == before[name], name
        assert len(after["messages"]) == len(before["messages"])
        assert UMLAUTS in {row["message"] for row in rows(new, MESSAGES)}
        assert migrate.differences(new) == []


def test_its_numbers_go_on_after_those_that_there_were(
    store: Store, tmp_path: Path, url: str
) -> None:
    last = max(row["id"] for row in rows(store, MESSAGES))
    with restored(store, tmp_path, url) as new:
        send(new, "and on", agent="sleeper")
        assert max(row["id"] for row in rows(new, MESSAGES)) == last + 1


def test_what_ran_waits_again_and_nobody_is_to_blame(
    store: Store, tmp_path: Path, url: str
) -> None:
    before = [row for row in rows(store, MESSAGES) if row["status"] == "processing"]
    assert len(before) == 1
    with restored(store, tmp_path, url) as new:
        found = {row["message_id"]: row for row in rows(new, MESSAGES)}
        row = found[before[0]["message_id"]]
        assert (row["status"], row["retry_count"], row["crash_count"]) == ("pending", 0, 0)
        assert all(lane["claim_token"] is None for lane in rows(new, LANES))
        assert rows(new, WORKERS) == []
        claimed = take(new)
        assert "the next" in texts_of(claimed)
        done(new, claimed.token)


def test_a_turn_of_upkeep_is_nobodys(store: Store, tmp_path: Path) -> None:
    enter_rota(store)
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE system_agents SET holder = 'x', lease_expires_at = 1"))
    with restored(store, tmp_path) as new:
        assert {row["holder"] for row in rows(new, SYSTEM_AGENTS)} == {None}


def test_a_delivery_that_was_under_way_waits_uncounted_or_is_unknown(
    store: Store, tmp_path: Path, url: str
) -> None:
    (waited,) = (row["id"] for row in rows(store, RESPONSES) if row["message_id"] == "slack_waits")
    taken = lease(store, limit=100)
    assert waited in {each.id for each in taken}
    answer(store, "slack_half")
    half, token = lease_one(store)
    with store.write() as tx:
        begin_part(tx, token)
    with restored(store, tmp_path, url) as new:
        found = {row["id"]: row for row in rows(new, RESPONSES)}
        assert found[half.id]["status"] == "unknown"
        assert (found[waited]["status"], found[waited]["delivery_attempts"]) == ("pending", 0)
        release_hold(new)
        assert [each.id for each in lease(new, limit=100)] == [each.id for each in taken]


def test_nothing_goes_out_before_it_is_let_go_and_all_of_it_once_afterwards(
    store: Store, tmp_path: Path, url: str
) -> None:
    waiting = [row["id"] for row in rows(store, RESPONSES) if row["channel"] == "slack"]
    assert len(waiting) == 2
    path = take_backup(store, tmp_path / "b").backup.path
    made_of(path, tmp_path / "new", url)
    with store_of(tmp_path / "new", url, now=START + 3 * DAY) as new:
        with new.read() as tx:
            hold = find_hold(tx)
        assert hold is not None
        assert hold.reason == "restored from the backup of 2023-11-14 22:13 UTC"
        later = answer(new, "slack_later")
        assert lease(new) == []
        found = release_hold(new)
        assert found is not None
        assert found.count == 3
        assert [each.id for each in lease(new)] == [*waiting, later]
        assert lease(new) == []


def test_keys_of_that_time_open_nothing_unless_they_are_kept(store: Store, tmp_path: Path) -> None:
    with restored(store, tmp_path) as new:
        with new.read() as tx:
            assert [each.valid(tx.now) for each in list_keys(tx)] == [False]
        assert all(row["revoked_at"] for row in rows(new, API_KEYS))
        assert len(events(new, "key_revoked")) == 1
    made_of(next((tmp_path / "b").iterdir()), tmp_path / "other", keep_keys=True)
    with store_of(tmp_path / "other") as other, other.read() as tx:
        assert [each.valid(tx.now) for each in list_keys(tx)] == [True]
    assert not (tmp_path / "new" / "token").exists()


def test_files_lie_in_the_new_home_and_rows_name_them_there(
    store: Store, tmp_path: Path, url: str
) -> None:
    with restored(store, tmp_path, url) as new:
        home = new.settings.home
        for table in (MESSAGES, RESPONSES):
            named = [file for row in rows(new, table) for file in files_of(row["files"])]
            assert named == [str(home / "files" / "file_1_a.txt")]
        assert (home / "files" / "file_1_a.txt").read_text() == "of a person"
        assert os.access(home / "plugins" / "shout" / "run.sh", os.X_OK)
        assert (home / "plugins" / "latest").readlink() == Path("shout")
        assert (home / "plugins" / "shout" / "empty").is_dir()
    modes = {
        stat.S_IMODE(path.lstat().st_mode) for path in home.rglob("*") if not path.is_symlink()
    }
    assert modes <= {0o600, 0o700}
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_workspaces_that_are_in_the_backup_are_in_the_new_home(
    store: Store, tmp_path: Path
) -> None:
    settings = store.settings
    inside, outside = settings.workspace / "coder" / "repo", "/srv/elsewhere"
    with store.engine.begin() as connection:
        update = text("UPDATE agents SET directory = :d WHERE id = :i")
        connection.execute(update, {"d": str(inside), "i": "coder"})
        connection.execute(update, {"d": outside, "i": "sleeper"})
    with restored(store, tmp_path, workspace=True) as new:
        home = new.settings.home
        found = Settings.load({"BULLPEN_HOME": str(home)})
        assert found.workspace == home / "workspace"
        assert (home / "workspace" / "coder" / "draft.md").read_text() == "a draft"
        with new.engine.begin() as connection:
            places = connection.execute(text("SELECT directory FROM agents ORDER BY id")).all()
        assert [each for (each,) in places] == [str(home / "workspace/coder/repo"), outside]


@pytest.mark.parametrize("line", ['database_url = "postgresql://ann:pw@live/bullpen"', ""])
def test_the_settings_are_as_they_were_but_for_the_database_of_the_old_home(
    store: Store, tmp_path: Path, line: str
) -> None:
    text_ = f"# mine\nmax_runs = 3\n{line}\nopenai_api_key = 'sk-1'\n"
    (store.settings.home / "settings.toml").write_text(text_)
    with restored(store, tmp_path) as new:
        found = Settings.load({"BULLPEN_HOME": str(new.settings.home)})
    assert (found.max_runs, found.openai_api_key, found.database_url) == (3, "sk-1", "")
    assert "# mine" in (found.home / "settings.toml").read_text()


def test_settings_that_nobody_can_read_count_no_more(store: Store, tmp_path: Path) -> None:
    bad = 'max_runs = \ndatabase_url = "postgresql://live/bullpen"\n'
    (store.settings.home / "settings.toml").write_text(bad)
    path = take_backup(store, tmp_path / "b").backup.path
    made = made_of(path, tmp_path / "new")
    assert not made.settings_valid
    assert Settings.load({"BULLPEN_HOME": str(made.home)}).database_url == ""
    assert (made.home / "settings.toml.bak").read_text() == bad


def test_a_server_that_was_given_is_the_database_of_the_new_home(
    store: Store, tmp_path: Path, url: str
) -> None:
    with restored(store, tmp_path, url) as new:
        home = new.settings.home
    assert Settings.load({"BULLPEN_HOME": str(home)}).database_url == url
    assert (home / "bullpen.db").exists() == (not url)


def test_one_file_can_be_restored_as_well(store: Store, tmp_path: Path) -> None:
    path = take_backup(store, tmp_path / "b.tar.gz").backup.path
    made_of(path, tmp_path / "new")
    with store_of(tmp_path / "new") as new:
        assert status(new, rows(store, MESSAGES)[0]["message_id"]) == "completed"
    assert left_in(tmp_path) == ["b.tar.gz", "new"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b.tar.gz", "new"]


def test_a_backup_of_an_earlier_revision_is_brought_to_this_one(
    stores: Stores, kind: str, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = stores.settings(kind)
    with stores.opened(settings, FakeClock()) as old:
        with old.engine.begin() as connection:
            fill(connection)
            for state in ("lanes SET claim_token = NULL", "messages SET claim_token = NULL"):
                connection.execute(text(f"UPDATE {state}"))
            before = read(connection)
        path = take_backup(old, tmp_path / "b").backup.path
    assert read_manifest(path).revision == open.HEAD_REVISION
    become_later(monkeypatch, tmp_path)
    made_of(path, tmp_path / "new", url, keep_keys=True)
    with store_of(tmp_path / "new", url) as new:
        assert new.revision() == LATER_REVISION
        assert migrate.differences(new) == []
        with new.engine.begin() as connection:
            after = read(connection)
    assert after[f"{LATER_TABLE}.agent"] == after["agents.id"]
    for name, values in before.items():
        if name.split(".")[0] not in ("holds", "responses", "workers", "system_agents"):
            assert [_plain(each) for each in after[name]] == [_plain(each) for each in values], name


def _plain(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(int(each) if isinstance(each, bool) else each for each in row)


def test_a_backup_of_an_unknown_revision_is_refused(store: Store, tmp_path: Path) -> None:
    path = take_backup(store, tmp_path / "b").backup.path
    rewrite(path, revision="9999")
    with pytest.raises(SchemaTooNew):
        made_of(path, tmp_path / "new")
    rewrite(path, revision="0005")
    with pytest.raises(SchemaTooOld, match="older than the first release"):
        made_of(path, tmp_path / "new")
    assert left_in(tmp_path) == ["b"]


def test_a_damaged_backup_is_refused_and_no_home_is_made(store: Store, tmp_path: Path) -> None:
    path = take_backup(store, tmp_path / "b").backup.path
    flip(path / "files" / "file_1_a.txt", 0)
    with pytest.raises(BadBackup, match="is damaged"):
        made_of(path, tmp_path / "new")
    (path / MANIFEST_FILE).unlink()
    with pytest.raises(BadBackup, match="is not a backup"):
        made_of(path, tmp_path / "new")
    with pytest.raises(BadBackup, match="does not exist"):
        made_of(tmp_path / "nothing", tmp_path / "new")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b"]


def test_nothing_is_restored_in_place(store: Store, tmp_path: Path) -> None:
    path = take_backup(store, tmp_path / "b").backup.path
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "full")
    (tmp_path / "file").write_text("mine")
    for home in (store.settings.home, tmp_path / "full", tmp_path / "link", tmp_path / "file"):
        with pytest.raises(InTheWay):
            made_of(path, home)
    (tmp_path / "empty").mkdir()
    made_of(path, tmp_path / "empty")
    assert (tmp_path / "empty" / "bullpen.db").is_file()
    assert (tmp_path / "full" / "mine").read_text() == "mine"


@pytest.mark.postgres
def test_a_server_must_be_one_and_its_database_empty(stores: Stores, tmp_path: Path) -> None:
    with (
        stores.opened(stores.settings("postgresql")) as there,
        stores.opened(stores.settings("sqlite")) as here,
    ):
        path = take_backup(here, tmp_path / "b").backup.path
        with pytest.raises(InTheWay, match="not empty"):
            made_of(path, tmp_path / "new", there.settings.url)
    for bad in ("sqlite:////tmp/x.db", "mysql://x/y", "no url"):
        with pytest.raises(BadSetting):
            made_of(path, tmp_path / "new", bad)
    assert left_in(tmp_path) == ["b"]


@pytest.mark.parametrize("count", [1, 4, 7, 20])
def test_kill_9_in_the_middle_leaves_no_home_and_no_half_filled_database(
    store: Store, children: Children, tmp_path: Path, url: str, count: int
) -> None:
    if count == 20 and not url:
        pytest.skip("there is less to tell of one file than of a server's tables")
    path = take_backup(store, tmp_path / "b").backup.path
    (tmp_path / "place").mkdir()
    child = children.start(restore_until, path, tmp_path / "place" / "new", url, count)
    child.wait_until_stopped()
    child.send(signal.SIGKILL)
    child.wait()
    assert left_in(tmp_path / "place") == []
    made = restore(path, tmp_path / "place" / "new", database_url=url)
    assert sorted(each.name for each in (tmp_path / "place").iterdir()) == ["new"]
    with store_of(made.home, url) as new:
        assert len(rows(new, MESSAGES)) == len(rows(store, MESSAGES))


@pytest.mark.postgres
def test_a_server_that_refuses_a_row_has_nothing_of_it(stores: Stores, tmp_path: Path) -> None:
    """What SQLite may hold and PostgreSQL not: a NUL in a text."""
    with stores.opened(stores.settings("sqlite")) as store:
        with store.engine.begin() as connection:
            connection.execute(
                text("INSERT INTO chat_messages VALUES (1, 't', 'a', 'x' || char(0), 0)")
            )
        path = take_backup(store, tmp_path / "b").backup.path
    stores.server.create_database("nul")
    url = stores.server.url("nul")
    with pytest.raises(BackupFailed, match=r"(?i)nul|0x00"):
        made_of(path, tmp_path / "new", url)
    there = open_store(Settings(home=tmp_path, database_url=url), check=False)
    with there.engine.begin() as connection:
        assert inspect(connection).get_table_names() == []
    there.close()
    assert left_in(tmp_path) == ["b"]
