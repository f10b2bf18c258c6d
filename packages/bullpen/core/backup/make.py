"""backup: a copy of a home as of one moment, while everything in it goes on.

The database comes first and the files after it: so what its rows name is there. All is written
under a name that nobody takes for a backup, checked as it lies there, and then given its own.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from bullpen import __version__
from bullpen.core.backup.archive import open_backup, pack
from bullpen.core.backup.disk import (
    DIRECTORY_MODE,
    fsync_path,
    fsync_tree,
    staging_directory,
    translate_disk_errors,
    write_file,
)
from bullpen.core.backup.last import Backup, record_last_backup
from bullpen.core.backup.manifest import (
    DATABASE_FILE,
    FILES,
    MANIFEST_FILE,
    PLUGINS,
    SETTINGS_FILE,
    WORKSPACE,
    Manifest,
    serialize_manifest,
)
from bullpen.core.backup.place import BackupTarget, make_directory, prune
from bullpen.core.backup.progress import ProgressCallback, ignore_progress
from bullpen.core.backup.rows import count_rows
from bullpen.core.backup.sqlite_copy import copy_sqlite
from bullpen.core.backup.tree import CopiedTree, copy_file, copy_tree, hash_file
from bullpen.core.backup.verify import read_verified_manifest
from bullpen.core.errors import BackupFailed, BadBackup, SchemaTooOld
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore

SPARE_BYTES = 64 << 20
"""So much room must be left on the disk: what is backed up may live there too."""


@dataclass(frozen=True, slots=True)
class BackupResult:
    """A backup that is there and good, and which older ones made room."""

    backup: Backup
    manifest: Manifest
    removed: tuple[Path, ...]


def create_backup(
    store: Store,
    place: BackupTarget,
    *,
    with_workspace: bool = False,
    keep: int | None = None,
    tell: ProgressCallback = ignore_progress,
) -> BackupResult:
    """Make a backup of this store's home; it is at its place when it is complete and checked."""
    revision = store.revision()
    if revision is None:
        raise SchemaTooOld("the database is empty: there is nothing to back up")
    made_at = store.clock.now()
    with translate_disk_errors("the backup cannot be made"):
        make_directory(place.directory)
        with staging_directory(place.directory) as here:
            contents = here / "backup"
            contents.mkdir(DIRECTORY_MODE)
            _check_free_space(store, here)
            manifest = _write(store, contents, made_at, revision, with_workspace, tell)
            _verify_contents(contents, tell)
            target = place.named(made_at)
            _publish(contents, target, place, tell)
    backup = Backup(path=target, made_at=made_at, size=manifest.size)
    with suppress(OSError):  # it is made all the same
        record_last_backup(store.settings, backup)
    removed = [] if keep is None else prune(place.directory, keep, manifest.homes)
    return BackupResult(backup, manifest, tuple(removed))


def _write(
    store: Store,
    contents: Path,
    made_at: int,
    revision: str,
    with_workspace: bool,
    tell: ProgressCallback,
) -> Manifest:
    settings, copied = store.settings, CopiedTree()
    database = contents / DATABASE_FILE
    if isinstance(store, SqliteStore):
        copy_sqlite(store, database, tell)
    else:
        _copy_postgres(store, database, revision, tell)
    tell("its checksum", 0, 0)
    copied.files.append(hash_file(database, DATABASE_FILE))
    with suppress(FileNotFoundError):
        copied.files.append(copy_file(settings.home / SETTINGS_FILE, contents, SETTINGS_FILE))
    trees = {FILES: settings.files, PLUGINS: settings.home / PLUGINS}
    if with_workspace:
        trees[WORKSPACE] = settings.workspace
    for name, tree in trees.items():
        tell(name, 0, 0)
        copy_tree(tree, contents, name, copied)
    with closing(sqlite3.connect(database)) as copy:
        rows = count_rows(copy)
    manifest = Manifest(
        version=__version__,
        revision=revision,
        made_at=made_at,
        kind=store.dialect,
        homes=_path_aliases(settings.home),
        workspaces=_path_aliases(settings.workspace),
        with_workspace=with_workspace,
        files=tuple(copied.files),
        links=tuple(copied.links),
        directories=tuple(copied.directories),
        rows=rows,
    )
    write_file(contents / MANIFEST_FILE, serialize_manifest(manifest))
    fsync_tree(contents)
    return manifest


def _path_aliases(directory: Path) -> tuple[str, ...]:
    return tuple(dict.fromkeys((str(directory.absolute()), str(directory.resolve()))))


def _copy_postgres(store: Store, database: Path, revision: str, tell: ProgressCallback) -> None:
    from bullpen.core.backup.postgres_copy import copy_postgres  # most installations do without
    from bullpen.core.store.postgres import PostgresStore

    assert isinstance(store, PostgresStore)
    copy_postgres(store, database, revision, tell)


def _verify_contents(contents: Path, tell: ProgressCallback) -> None:
    try:
        read_verified_manifest(contents, tell)
    except BadBackup as error:
        raise BackupFailed(
            f"what was written is not good: {error}",
            hint="Nothing is kept of it. Is the database itself damaged, or the disk?",
        ) from error


def _publish(contents: Path, target: Path, place: BackupTarget, tell: ProgressCallback) -> None:
    """Give it the name by which it is known, from one moment to the next."""
    if place.file is None:
        contents.rename(target)
    else:
        archive = contents.with_name("archive")
        tell("packing", 0, 0)
        pack(contents, archive, place.file)
        fsync_path(archive)
        with open_backup(archive, archive.parent) as unpacked:
            _verify_contents(unpacked, tell)
        archive.rename(target)
    fsync_path(place.directory)


def _check_free_space(store: Store, here: Path) -> None:
    """Refuse at once what would fill the disk, on which the database may live itself."""
    if not isinstance(store, SqliteStore):
        return
    log = Path(f"{store.path}-wal")
    needed = store.path.stat().st_size + (log.stat().st_size if log.exists() else 0) + SPARE_BYTES
    free = shutil.disk_usage(here).free
    if free < needed:
        raise BackupFailed(
            f"there is no room: it takes about {needed >> 20} MB, and {free >> 20} MB are free",
            hint="Free some space, or give another place.",
        )
