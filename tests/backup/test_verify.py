"""verify names each damage, whatever was done to a backup."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.errors import BadBackup
from bullpen.ops.backup.contents import (
    DATABASE_FILE,
    MANIFEST_FILE,
    FileEntry,
    open_backup,
    read_manifest,
    serialize_manifest,
)
from bullpen.ops.backup.verify import read_verified_manifest, verify_backup
from tests.backup.homes import lived_in, take_backup
from tests.stores import FakeClock, Stores

Change = Callable[[Path], object]
NOTES = "files/file_1_a.txt"


@pytest.fixture(scope="module")
def good(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup that every test copies before it damages it."""
    settings = stores.settings("sqlite")
    with stores.opened(settings, FakeClock()) as store:
        lived_in(store)
        (settings.home / "settings.toml").write_text("api_port = 4000\n")
        return take_backup(store, tmp_path_factory.mktemp("good")).backup.path


@pytest.fixture
def backup(good: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(good, tmp_path / "backup"))


def flip(path: Path, at: int) -> None:
    """Change one bit."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def cut(path: Path, by: int) -> None:
    """Cut off the end."""
    data = path.read_bytes()
    path.write_bytes(data[:-by])


def rewrite(backup: Path, **changes: object) -> None:
    """Write the manifest anew, checksum and all: as somebody who knows how."""
    path = backup / MANIFEST_FILE
    manifest = replace(read_manifest(backup), **changes)  # type: ignore[arg-type]
    path.write_bytes(serialize_manifest(manifest))


def change_database(backup: Path, sql: str) -> None:
    """Change it, and let the manifest say that this is right."""
    path = backup / DATABASE_FILE
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(sql)
    entries = [each for each in read_manifest(backup).files if each.path != DATABASE_FILE]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    rewrite(backup, files=(FileEntry(DATABASE_FILE, path.stat().st_size, digest), *entries))


def replace_by_link(path: Path) -> None:
    """The same bytes, from elsewhere."""
    target = path.rename(path.parent.parent.parent / "elsewhere")
    path.symlink_to(target)


DAMAGES: dict[str, tuple[Change, tuple[str, ...]]] = {
    "a bit of the database": (
        lambda b: flip(b / DATABASE_FILE, 20_000),
        ("bullpen.db is damaged",),
    ),
    "a bit of its head": (lambda b: flip(b / DATABASE_FILE, 3), ("is damaged", "cannot read")),
    "the end of the database": (lambda b: cut(b / DATABASE_FILE, 4096), ("instead of",)),
    "an empty database": (lambda b: (b / DATABASE_FILE).write_bytes(b""), ("has 0 bytes",)),
    "no database": (lambda b: (b / DATABASE_FILE).unlink(), ("bullpen.db is missing",)),
    "a bit of a file": (lambda b: flip(b / NOTES, 0), (f"{NOTES} is damaged",)),
    "a longer file": (lambda b: (b / NOTES).write_text("x" * 99), (f"{NOTES} has 99 bytes",)),
    "no file": (lambda b: (b / NOTES).unlink(), (f"{NOTES} is missing",)),
    "a link": (lambda b: replace_by_link(b / NOTES), (f"{NOTES} is no longer a regular file",)),
    "no settings": (lambda b: (b / "settings.toml").unlink(), ("settings.toml is missing",)),
    "a foreign file": (
        lambda b: (b / "plugins" / "evil.py").write_text("x"),
        ("plugins/evil.py does not belong to this backup",),
    ),
    "a foreign link": (
        lambda b: (b / "plugins" / "evil").symlink_to("/etc"),
        ("plugins/evil does not belong to this backup",),
    ),
    "a bit of the manifest": (lambda b: flip(b / MANIFEST_FILE, 150), (MANIFEST_FILE,)),
    "the end of the manifest": (
        lambda b: cut(b / MANIFEST_FILE, 20),
        (f"cannot read {MANIFEST_FILE}",),
    ),
    "no manifest": (lambda b: (b / MANIFEST_FILE).unlink(), ("is not a backup",)),
    "another manifest": (
        lambda b: (b / MANIFEST_FILE).write_text("[1]"),
        (f"{MANIFEST_FILE} is not a manifest",),
    ),
    "rows that are gone": (
        lambda b: change_database(b, "DELETE FROM messages WHERE status = 'pending'"),
        ("table messages has 2 rows instead of 3 rows",),
    ),
    "a table that is gone": (
        lambda b: change_database(b, "DROP TABLE beats"),
        ("table beats has no entry instead of 0 rows",),
    ),
    "another revision": (
        lambda b: change_database(b, "UPDATE alembic_version SET version_num = '0001'"),
        ("has revision 0001 instead of",),
    ),
    "a later revision": (
        lambda b: rewrite(b, revision="9999"),
        ("9999", "a later version made it"),
    ),
    "an unreleased revision": (
        lambda b: rewrite(b, revision="0005"),
        ("before the first release",),
    ),
    "a path that leads out": (
        lambda b: rewrite(b, directories=("../../outside",)),
        ("is outside the backup",),
    ),
}


def test_a_good_one_is_good_and_not_touched(backup: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in backup.rglob("*")}
    found = verify_backup(backup)
    assert found.damages == ()
    assert {path: path.stat().st_mtime_ns for path in backup.rglob("*")} == before


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_named(backup: Path, name: str) -> None:
    change, told = DAMAGES[name]
    change(backup)
    found = verify_backup(backup)
    assert not found.good
    text = "\n".join(found.damages)
    for each in told:
        assert each in text
    with pytest.raises(BadBackup):
        read_verified_manifest(backup)


def test_all_damages_are_named_at_once(backup: Path) -> None:
    flip(backup / NOTES, 0)
    (backup / "settings.toml").unlink()
    (backup / "extra").write_text("x")
    assert len(verify_backup(backup).damages) == 3


def test_every_bit_of_the_manifest_counts(backup: Path) -> None:
    size = (backup / MANIFEST_FILE).stat().st_size
    for at in range(0, size, 37):
        before = (backup / MANIFEST_FILE).read_bytes()
        flip(backup / MANIFEST_FILE, at)
        changed = (backup / MANIFEST_FILE).read_bytes()
        try:
            same = json.loads(before) == json.loads(changed)
        except ValueError:
            same = False
        assert verify_backup(backup).good == same, at  # a blank may be another one
        (backup / MANIFEST_FILE).write_bytes(before)


@pytest.mark.parametrize("ending", ["tar", "tar.gz"])
def test_an_archive_that_is_damaged_is_said_to_be(
    stores: Stores, tmp_path: Path, ending: str
) -> None:
    with stores.opened(stores.settings("sqlite")) as store:
        path = take_backup(store, tmp_path / f"b.{ending}").backup.path
    whole = path.read_bytes()
    with open_backup(path) as directory:
        assert verify_backup(directory).good
    path.write_bytes(whole[: len(whole) // 2])
    assert _is_bad(path)
    path.write_bytes(whole)
    flip(path, len(whole) // 2)
    assert _is_bad(path)
    path.write_text("this is a letter")
    assert _is_bad(path)


def test_the_checksum_of_a_compressed_archive_is_read(stores: Stores, tmp_path: Path) -> None:
    with stores.opened(stores.settings("sqlite")) as store:
        path = take_backup(store, tmp_path / "b.tar.gz").backup.path
    flip(path, path.stat().st_size - 6)  # its last eight bytes are the checksum and the length
    assert _is_bad(path)


def _is_bad(path: Path) -> bool:
    try:
        with open_backup(path) as directory:
            return not verify_backup(directory).good
    except BadBackup:
        return True
