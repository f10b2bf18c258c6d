"""Verify a backup: every file, the database and the manifest. Each damage is reported."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from bullpen.core.errors import BadBackup
from bullpen.core.store import open
from bullpen.core.store.base import SELECT_REVISION
from bullpen.core.text import format_count
from bullpen.ops.backup.contents import (
    DATABASE_FILE,
    MANIFEST_FILE,
    FileEntry,
    Manifest,
    ProgressCallback,
    ignore_progress,
    read_manifest,
)
from bullpen.ops.backup.database_copy import count_rows

READ_CHUNK_BYTES = 1 << 20
MAX_DATABASE_DAMAGES = 10
"""The maximum number of errors that SQLite's integrity check reports."""


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """The damages of a backup; `manifest` is None if it cannot be read."""

    manifest: Manifest | None
    damages: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether there is no damage."""
        return not self.damages


def verify_backup(directory: Path, tell: ProgressCallback = ignore_progress) -> VerifyResult:
    """Compare every byte of a backup with its manifest."""
    try:
        manifest = read_manifest(directory)
    except BadBackup as error:
        return VerifyResult(None, (str(error),))
    return VerifyResult(manifest, tuple(_damages(directory, manifest, tell)))


def read_verified_manifest(directory: Path, tell: ProgressCallback = ignore_progress) -> Manifest:
    """The manifest of a good backup; raises BadBackup with the first damage."""
    found = verify_backup(directory, tell)
    if found.manifest is None or found.damages:
        first, *others = found.damages
        raise BadBackup(first + (f", and {len(others)} more" if others else ""))
    return found.manifest


def _damages(directory: Path, manifest: Manifest, tell: ProgressCallback) -> Iterator[str]:
    done = 0
    for entry in manifest.files:
        tell("verifying the files", done, manifest.size)
        wrong = _file(directory, entry)
        if wrong is not None:
            yield wrong
        done += entry.size
    known = {MANIFEST_FILE, *(each.path for each in manifest.files)}
    for path in _list_files(directory):
        if path not in known:
            yield f"{path} does not belong to this backup"
    if manifest.revision not in open.KNOWN_REVISIONS:
        older = manifest.revision in open.UNRELEASED_REVISIONS
        yield (
            f"its schema has revision {manifest.revision}, which this version of Bullpen does not"
            f" know: {'a checkout before the first release' if older else 'a later version'} made"
            " it"
        )
    tell("verifying the database", done, manifest.size)
    yield from _database(directory / DATABASE_FILE, manifest)


def _file(directory: Path, entry: FileEntry) -> str | None:
    path = directory / entry.path
    try:
        size = path.lstat().st_size
        if path.is_symlink() or not path.is_file():
            return f"{entry.path} is no longer a regular file"
        if size != entry.size:
            return f"{entry.path} has {size} bytes instead of {entry.size}"
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while piece := file.read(READ_CHUNK_BYTES):
                digest.update(piece)
    except FileNotFoundError:
        return f"{entry.path} is missing"
    except OSError as error:
        return f"cannot read {entry.path}: {error.strerror}"
    return None if digest.hexdigest() == entry.sha256 else f"{entry.path} is damaged"


def _list_files(directory: Path) -> Iterator[str]:
    for place, directories, names in os.walk(directory):
        for name in names + [each for each in directories if (Path(place) / each).is_symlink()]:
            yield (Path(place) / name).relative_to(directory).as_posix()


def _database(path: Path, manifest: Manifest) -> Iterator[str]:
    """Check the database without writing, because the backup may be on a read-only disk."""
    if not path.is_file():
        return
    try:
        uri = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            for (found,) in database.execute(f"PRAGMA integrity_check({MAX_DATABASE_DAMAGES})"):
                if found != "ok":
                    yield f"{DATABASE_FILE} is damaged: {found}"
            there = count_rows(database)
            ((revision,),) = database.execute(SELECT_REVISION)
    except (sqlite3.Error, ValueError) as error:
        yield f"cannot read {DATABASE_FILE}: {error}"
        return
    if revision != manifest.revision:
        yield f"{DATABASE_FILE} has revision {revision} instead of {manifest.revision}"
    for name in sorted({*there, *manifest.rows}):
        count, wanted = there.get(name), manifest.rows.get(name)
        if count != wanted:
            yield f"table {name} has {_rows(count)} instead of {_rows(wanted)}"


def _rows(count: int | None) -> str:
    return "no entry" if count is None else format_count(count, "row")
