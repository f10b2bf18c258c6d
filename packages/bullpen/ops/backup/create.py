"""Backups: a consistent copy of a home, made while the services run.

The database is copied first and the files after it, so that the backup has every file that a row
refers to. A backup is written under a temporary name, verified on the disk, and then renamed.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bullpen import __version__
from bullpen.core.clock import SECOND
from bullpen.core.errors import (
    BackupFailed,
    BadBackup,
    BullpenError,
    InTheWay,
    SchemaTooOld,
    StoreMissing,
)
from bullpen.core.files import PRIVATE_DIRECTORY_MODE, fsync_path, replace_file
from bullpen.core.settings import Settings
from bullpen.core.store import migrate, open
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore
from bullpen.ops.backup.contents import (
    DATABASE_FILE,
    FILES,
    MANIFEST_FILE,
    PLUGINS,
    SETTINGS_FILE,
    WORKSPACE,
    CopiedTree,
    Manifest,
    ProgressCallback,
    copy_file,
    copy_tree,
    hash_file,
    ignore_progress,
    is_archive,
    open_backup,
    pack,
    read_manifest,
    serialize_manifest,
)
from bullpen.ops.backup.database_copy import copy_sqlite, count_rows, has_data
from bullpen.ops.backup.disk import (
    fsync_tree,
    staging_directory,
    translate_disk_errors,
)
from bullpen.ops.backup.verify import read_verified_manifest

LAST_BACKUP_FILE = "last-backup.json"
BACKUP_NAME = re.compile(r"bullpen-(\d{8}T\d{6}Z)(?:-(\d+))?")
MAX_PER_SECOND = 1000
SPARE_BYTES = 64 << 20
"""Free space that must remain, because the database may be on the same disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup that was made and verified."""

    path: Path
    made_at: int
    """The time of its data."""
    size: int
    """In bytes."""

    @property
    def there(self) -> bool:
        """Whether it still exists; its disk may be disconnected."""
        return self.path.exists()


@dataclass(frozen=True, slots=True)
class BackupTarget:
    """The directory for a backup, and the file name of an archive."""

    directory: Path
    file: str | None = None

    def path_for(self, made_at: int) -> Path:
        """A free path for a backup of this moment."""
        if self.file is not None:
            return self.directory / self.file
        name = f"bullpen-{datetime.fromtimestamp(made_at / SECOND, UTC):%Y%m%dT%H%M%SZ}"
        names = (name, *(f"{name}-{number}" for number in range(2, MAX_PER_SECOND)))
        return next(path for each in names if not (path := self.directory / each).exists())


@dataclass(frozen=True, slots=True)
class BackupResult:
    """A backup that was made, and the older backups that were deleted."""

    backup: Backup
    manifest: Manifest
    removed: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class UpgradeResult:
    """The outcome of an upgrade."""

    before: str | None
    """None if there was no database."""
    backup: Path | None
    """None if there was no data."""


def create_backup(
    store: Store,
    place: BackupTarget,
    *,
    with_workspace: bool = False,
    keep: int | None = None,
    tell: ProgressCallback = ignore_progress,
) -> BackupResult:
    """Back up a store's home; the backup gets its name when it is complete and verified."""
    revision = store.revision()
    if revision is None:
        raise SchemaTooOld("nothing to back up: the database is empty")
    made_at = store.clock.now()
    with translate_disk_errors("cannot write the backup"):
        make_directory(place.directory)
        with staging_directory(place.directory) as here:
            contents = here / "backup"
            contents.mkdir(PRIVATE_DIRECTORY_MODE)
            _check_free_space(store, here)
            manifest = _write(store, contents, made_at, revision, with_workspace, tell)
            _verify_contents(contents, tell)
            target = place.path_for(made_at)
            _publish(contents, target, place, tell)
    backup = Backup(path=target, made_at=made_at, size=manifest.size)
    with suppress(OSError):  # the backup exists all the same
        record_last_backup(store.settings, backup)
    removed = [] if keep is None else prune(place.directory, keep, manifest.homes)
    return BackupResult(backup, manifest, tuple(removed))


def upgrade_database(
    store: Store, *, backup: bool = True, tell: ProgressCallback = ignore_progress
) -> UpgradeResult:
    """Upgrade the database to this version's schema; back up its data first."""
    before = store.revision()
    if before is None and open.is_known_database(store.settings):
        raise StoreMissing("the database has lost its tables")
    kept = _backup_before(store, before, tell) if backup else None
    migrate.upgrade(store)
    open.remember_database(store.settings)
    return UpgradeResult(before, kept)


def _backup_before(store: Store, before: str | None, tell: ProgressCallback) -> Path | None:
    if before is None or before == open.HEAD_REVISION or before not in open.KNOWN_REVISIONS:
        return None
    if not has_data(store):
        return None
    try:
        return create_backup(store, resolve_target(store.settings, None), tell=tell).backup.path
    except BullpenError as error:
        error.hint = f"{error.hint} To upgrade without a backup: bullpen db upgrade --no-backup"
        raise


def last_backup(settings: Settings) -> Backup | None:
    """The last backup of this home; None if none is known."""
    try:
        found = json.loads((settings.home / LAST_BACKUP_FILE).read_text(encoding="utf-8"))
        return Backup(
            path=Path(str(found["path"])),
            made_at=int(found["made_at"]),
            size=int(found["size"]),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None


def record_last_backup(settings: Settings, backup: Backup) -> None:
    """Record this backup as the last one."""
    found = {"path": str(backup.path), "made_at": backup.made_at, "size": backup.size}
    replace_file(settings.home / LAST_BACKUP_FILE, json.dumps(found).encode())


def resolve_target(settings: Settings, given: Path | None) -> BackupTarget:
    """Return the target of a given path: a directory for backups, or a new archive."""
    if given is None:
        return BackupTarget(settings.home.absolute() / "backups")
    path = given.expanduser().absolute()
    if not path.is_dir() and is_archive(path):
        if path.exists():
            raise InTheWay(f"{path} already exists", hint="Give another name, or remove it.")
        _check_parent(path)
        return BackupTarget(path.parent, path.name)
    if path.exists() and not path.is_dir():
        raise InTheWay(
            f"{path} is a file",
            hint="Give a directory, or a new file with a name such as `bullpen.tar.gz`.",
        )
    if (path / MANIFEST_FILE).exists():
        raise InTheWay(
            f"{path} is a backup itself", hint=f"Give the directory of the backups: {path.parent}"
        )
    _check_parent(path)
    return BackupTarget(path)


def _check_parent(path: Path) -> None:
    """Refuse a missing parent directory: on an unmounted disk, it would be on another disk."""
    if not path.parent.exists():
        raise BackupFailed(
            f"directory {path.parent} does not exist",
            hint="If it is on another disk, mount the disk. Otherwise create it: "
            f"mkdir -p {shlex.quote(str(path.parent))}",
        )


def make_directory(directory: Path) -> None:
    """Create a private directory, and its parents with the usual permissions."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(PRIVATE_DIRECTORY_MODE, exist_ok=True)


def prune(directory: Path, keep: int, homes: tuple[str, ...]) -> list[Path]:
    """Delete this home's backups with generated names, except the newest; return the deleted."""
    ours = sorted((age, path) for path in directory.iterdir() if (age := _sort_key(path, homes)))
    old = [path for _, path in ours[: max(0, len(ours) - keep)]]
    for path in old:
        with staging_directory(directory) as trash:  # a half-deleted one must not look complete
            path.rename(trash / path.name)
    return old


def _sort_key(path: Path, homes: tuple[str, ...]) -> tuple[str, int] | None:
    """Return a key that sorts backups by age; None for everything else."""
    found = BACKUP_NAME.fullmatch(path.name)
    if found is None or path.is_symlink() or not path.is_dir():
        return None
    try:
        if not set(read_manifest(path).homes) & set(homes):
            return None
    except BadBackup:
        return None
    return found[1], int(found[2] or 1)


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
    tell("computing the checksum", 0, 0)
    copied.files.append(hash_file(database, DATABASE_FILE))
    with suppress(FileNotFoundError):
        copied.files.append(copy_file(settings.home / SETTINGS_FILE, contents, SETTINGS_FILE))
    trees = {FILES: settings.files, PLUGINS: settings.home / PLUGINS}
    if with_workspace:
        trees[WORKSPACE] = settings.workspace
    for name, tree in trees.items():
        tell(f"copying {name}", 0, 0)
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
    replace_file(contents / MANIFEST_FILE, serialize_manifest(manifest))
    fsync_tree(contents)
    return manifest


def _path_aliases(directory: Path) -> tuple[str, ...]:
    return tuple(dict.fromkeys((str(directory.absolute()), str(directory.resolve()))))


def _copy_postgres(store: Store, database: Path, revision: str, tell: ProgressCallback) -> None:
    from bullpen.core.store.postgres import PostgresStore
    from bullpen.ops.backup.database_copy import copy_postgres  # psycopg is loaded only if needed

    assert isinstance(store, PostgresStore)
    copy_postgres(store, database, revision, tell)


def _verify_contents(contents: Path, tell: ProgressCallback) -> None:
    try:
        read_verified_manifest(contents, tell)
    except BadBackup as error:
        raise BackupFailed(
            f"the new backup is damaged: {error}",
            hint="It was deleted. Check the database and the disk: bullpen doctor",
        ) from error


def _publish(contents: Path, target: Path, place: BackupTarget, tell: ProgressCallback) -> None:
    """Give a backup its final name, atomically."""
    if place.file is None:
        contents.rename(target)
    else:
        archive = contents.with_name("archive")
        tell("packing the archive", 0, 0)
        pack(contents, archive, place.file)
        with open_backup(archive, archive.parent) as unpacked:
            _verify_contents(unpacked, tell)
        archive.rename(target)
    fsync_path(place.directory)


def _check_free_space(store: Store, here: Path) -> None:
    """Refuse a backup that would fill the disk, which the database may share."""
    if not isinstance(store, SqliteStore):
        return
    log = Path(f"{store.path}-wal")
    needed = store.path.stat().st_size + (log.stat().st_size if log.exists() else 0) + SPARE_BYTES
    free = shutil.disk_usage(here).free
    if free < needed:
        raise BackupFailed(
            f"not enough disk space: the backup needs about {needed >> 20} MB, "
            f"and {free >> 20} MB are free",
            hint="Free some space, or give another directory.",
        )
