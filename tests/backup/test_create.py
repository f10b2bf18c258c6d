"""A backup has everything of one moment, is private, and is there whole or not at all."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import stat
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from bullpen.core.clock import HOUR, MINUTE
from bullpen.core.errors import BackupFailed, InTheWay, SchemaTooOld
from bullpen.core.message import Answer
from bullpen.core.models import RESPONSES
from bullpen.core.outbox.write import send_to_owner, send_to_person
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.ops.backup import create
from bullpen.ops.backup.contents import read_manifest
from bullpen.ops.backup.create import BackupTarget, create_backup, last_backup, resolve_target
from bullpen.ops.backup.verify import verify_backup
from tests.backup.homes import keep_file, left_in, take_backup, take_until
from tests.conformance.verbs import dump, rows, send
from tests.crash.children import Children
from tests.stores import FakeClock, Stores


def test_it_has_the_rows_the_files_and_what_links_and_empty_directories_are(
    store: Store, tmp_path: Path
) -> None:
    made = take_backup(store, tmp_path / "b")
    manifest = read_manifest(made.backup.path)
    assert manifest == made.manifest
    assert manifest.kind == store.dialect
    assert {name: len(rows) for name, rows in dump(store).items()} == {
        name: count for name, count in manifest.rows.items() if name != "alembic_version"
    }
    paths = {each.path: each for each in manifest.files}
    assert {"bullpen.db", "files/file_1_a.txt", "plugins/shout/run.sh"} <= paths.keys()
    assert paths["plugins/shout/run.sh"].executable
    assert not paths["files/file_1_a.txt"].executable
    assert [(each.path, each.target) for each in manifest.links] == [("plugins/latest", "shout")]
    assert "plugins/shout/empty" in manifest.directories
    assert not any("token" in path or "draft" in path for path in paths)
    assert verify_backup(made.backup.path).good


def test_the_workspaces_are_in_it_if_asked_for(store: Store, tmp_path: Path) -> None:
    made = take_backup(store, tmp_path / "b", workspace=True)
    assert (made.backup.path / "workspace" / "coder" / "draft.md").read_text() == "a draft"
    assert verify_backup(made.backup.path).good


def test_nobody_else_can_read_any_of_it(store: Store, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = take_backup(store, tmp_path / "b", workspace=True)
        packed = take_backup(store, tmp_path / "b.tar.gz")
    finally:
        os.umask(before)
    found = [made.backup.path, *made.backup.path.rglob("*"), made.backup.path.parent]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600, 0o700}
    assert stat.S_IMODE(packed.backup.path.stat().st_mode) == 0o600


def test_it_is_one_database_file_that_needs_no_log(store: Store, tmp_path: Path) -> None:
    path = take_backup(store, tmp_path / "b").backup.path
    assert [each.name for each in path.glob("bullpen.db*")] == ["bullpen.db"]
    verify_backup(path)
    assert [each.name for each in path.glob("bullpen.db*")] == ["bullpen.db"]


def test_by_itself_it_lies_in_the_home_and_the_home_knows(store: Store) -> None:
    assert last_backup(store.settings) is None
    made = create_backup(store, resolve_target(store.settings, None))
    assert made.backup.path.parent == store.settings.home / "backups"
    assert made.backup.path.name == "bullpen-20231114T221320Z"
    assert last_backup(store.settings) == made.backup
    assert made.backup.made_at == store.clock.now()
    assert made.backup.there


def test_two_of_one_second_have_names_of_their_own(store: Store, tmp_path: Path) -> None:
    paths = [take_backup(store, tmp_path / "b").backup.path.name for _ in range(3)]
    assert paths == [f"bullpen-20231114T221320Z{end}" for end in ("", "-2", "-3")]


def test_one_file_has_it_all(store: Store, tmp_path: Path) -> None:
    for name in ("b.tar", "b.tar.gz", "b.tgz"):
        made = take_backup(store, tmp_path / name)
        assert made.backup.path == tmp_path / name
        with tarfile.open(made.backup.path) as archive:
            assert "b/manifest.json" in archive.getnames()
        with pytest.raises(InTheWay):
            take_backup(store, tmp_path / name)
    assert left_in(tmp_path) == ["b.tar", "b.tar.gz", "b.tgz"]


def test_only_the_oldest_of_this_home_with_names_of_ours_make_room(
    store: Store, clock: FakeClock, tmp_path: Path, stores: Stores, kind: str
) -> None:
    place = tmp_path / "b"
    foreign = stores.settings(kind)
    with stores.opened(foreign, FakeClock()) as other:
        theirs = take_backup(other, place).backup.path
    (place / "bullpen-20200101T000000Z").mkdir()
    (place / "notes").mkdir()
    mine = []
    for _ in range(12):
        clock.advance(HOUR)
        mine.append(take_backup(store, place).backup.path)
    renamed = mine[0].rename(place / "before-the-move")
    clock.advance(MINUTE)
    last = take_backup(store, place, keep=3)
    assert list(last.removed) == mine[1:10]
    assert left_in(place) == sorted(
        each.name for each in (
            theirs, renamed, *mine[10:], last.backup.path,
            place / "bullpen-20200101T000000Z", place / "notes",
        )
    )  # fmt: skip


def test_writers_go_on_meanwhile_and_what_they_write_is_not_in_it(
    stores: Stores, tmp_path: Path
) -> None:
    """A commit of another process between any two pieces; none makes it begin anew."""
    settings = stores.settings("sqlite")
    with stores.opened(settings) as store, stores.opened(settings) as other:
        with store.write() as tx:
            for _ in range(40):
                send_to_person(tx, Answer(message="x" * 1_000_000), channel="slack", sender="Ann")
        done: list[int] = []

        def tell(what: str, so_far: int, total: int) -> None:
            if what == "copying the database":
                done.append(so_far)
                with other.write() as tx:
                    send_to_owner(tx, "meanwhile")
            assert len(done) < 50, "it begins anew with every commit"

        made = create_backup(store, BackupTarget(tmp_path / "b"), tell=tell)
        assert len(done) > 3
        assert done == sorted(done)
        assert made.manifest.rows["responses"] == 40
        assert len(rows(store, RESPONSES)) == 40 + len(done)


def test_a_file_that_arrives_meanwhile_is_in_it_if_a_row_in_it_names_the_file(
    store: Store, tmp_path: Path
) -> None:
    """Before each step a file arrives, and a message that names it, as an upload does it."""
    arrived: list[str] = []

    def arrive(step: str, *_: int) -> None:
        name = f"file_{len(arrived)}.txt"
        arrived.append(step)
        path = keep_file(store.settings, name, step)
        send(store, "look", files=(str(path),))

    made = create_backup(store, BackupTarget(tmp_path / "b"), tell=arrive)
    assert {"copying files", "copying plugins"} <= set(arrived)
    with closing(sqlite3.connect(made.backup.path / "bullpen.db")) as copy:
        rows = copy.execute("SELECT files FROM messages WHERE files IS NOT NULL").fetchall()
    named = {Path(path).name for (files,) in rows for path in json.loads(files)}
    assert named
    kept = {path.name for path in (made.backup.path / "files").iterdir()}
    assert named <= kept


def test_an_empty_database_is_nothing_to_back_up(tmp_path: Path) -> None:
    nothing = open_store(Settings(home=tmp_path), check=False)
    with pytest.raises(SchemaTooOld):
        take_backup(nothing, tmp_path / "b")
    nothing.close()
    assert not (tmp_path / "b").exists()


def test_a_place_that_cannot_be_is_refused(store: Store, tmp_path: Path) -> None:
    made = take_backup(store, tmp_path / "b")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InTheWay, match="backup itself"):
        take_backup(store, made.backup.path)
    with pytest.raises(InTheWay, match="is a file"):
        take_backup(store, tmp_path / "file")
    for below in (tmp_path / "file" / "below", Path("/proc/bullpen")):
        with pytest.raises(BackupFailed, match="cannot write the backup"):
            take_backup(store, below)
    assert (tmp_path / "file").read_text() == "mine"
    assert left_in(tmp_path) == ["b", "file"]


def test_a_missing_parent_directory_is_refused_because_its_disk_may_not_be_mounted(
    store: Store, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    for to in (disk / "bullpen", disk / "bullpen" / "daily", disk / "bullpen.tar.gz"):
        with pytest.raises(BackupFailed, match=rf"directory {disk}[^ ]* does not exist") as raised:
            take_backup(store, to)
        assert f"mkdir -p {to.parent}" in raised.value.hint
        assert not disk.exists()
    disk.mkdir()
    assert take_backup(store, disk / "bullpen").backup.path.parent == disk / "bullpen"


def test_a_backup_below_what_it_copies_has_an_end(store: Store) -> None:
    made = take_backup(store, store.settings.workspace, workspace=True)
    assert verify_backup(made.backup.path).good
    assert not list(made.backup.path.glob("workspace/.bullpen-unfinished-*"))


def test_without_room_nothing_is_begun(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind != "sqlite":
        pytest.skip("nobody knows beforehand how large it will be")
    monkeypatch.setattr(create, "SPARE_BYTES", 1 << 60)
    with pytest.raises(BackupFailed, match="not enough disk space"):
        take_backup(store, tmp_path / "b")
    assert left_in(tmp_path / "b") == []


def _limited(settings: Settings, to: Path, limit: int) -> None:
    """Take a backup where no file may be longer: the disk is full there."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    store = open_store(settings)
    try:
        create_backup(store, resolve_target(settings, to), with_workspace=True)
    except BackupFailed:
        os._exit(77)
    finally:
        store.close()


# The database's own shared memory needs 32 768; at the last it is the archive that is too long.
@pytest.mark.parametrize(
    ("name", "limit"),
    [("b", 40_000), ("b", 100_000), ("b", 500_000), ("b.tar", 100_000), ("b.tar", 1_200_000)],
)
def test_a_full_disk_leaves_nothing_that_looks_like_a_backup(
    home: Settings, children: Children, tmp_path: Path, limit: int, name: str
) -> None:
    with (home.workspace / "large").open("wb") as file:
        file.truncate(1 << 20)
    place = tmp_path / "place"
    place.mkdir()
    assert children.run(_limited, home, place / name, limit) == 77
    assert not [each for each in place.rglob("*") if each.is_file()]
    assert last_backup(home) is None
    store = open_store(home)
    assert take_backup(store, place / name).backup.there
    store.close()


@pytest.mark.parametrize("count", range(1, 9))
def test_kill_9_leaves_nothing_that_looks_like_a_backup_and_the_next_tidies_up(
    home: Settings, children: Children, tmp_path: Path, count: int
) -> None:
    place = tmp_path / "b"
    child = children.start(take_until, home, place, count)
    child.wait_until_stopped()
    assert left_in(place) == []
    assert len(list(place.iterdir())) == 1
    store = open_store(home)
    beside = take_backup(store, place).backup.path
    assert len(list(place.iterdir())) == 2, "what another one is writing was taken away"
    child.kill()
    assert child.wait() == -signal.SIGKILL
    after = take_backup(store, place).backup.path
    store.close()
    assert sorted(place.iterdir()) == sorted([beside, after])
    assert verify_backup(after).good
