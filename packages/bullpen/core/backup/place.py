"""Where backups lie and what they are called; the older of them make room."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bullpen.core.backup.archive import is_archive
from bullpen.core.backup.disk import DIRECTORY_MODE, staging_directory
from bullpen.core.backup.manifest import MANIFEST_FILE, read_manifest
from bullpen.core.clock import SECOND
from bullpen.core.errors import BadBackup, InTheWay
from bullpen.core.settings import Settings

BACKUP_NAME = re.compile(r"bullpen-(\d{8}T\d{6}Z)(?:-(\d+))?")
MAX_PER_SECOND = 1000


@dataclass(frozen=True, slots=True)
class BackupTarget:
    """The directory, and the name of a file in it; without one, backups get names of their own."""

    directory: Path
    file: str | None = None

    def named(self, made_at: int) -> Path:
        """Where a backup of this moment is to be; nothing lies there."""
        if self.file is not None:
            return self.directory / self.file
        name = f"bullpen-{datetime.fromtimestamp(made_at / SECOND, UTC):%Y%m%dT%H%M%SZ}"
        names = (name, *(f"{name}-{number}" for number in range(2, MAX_PER_SECOND)))
        return next(path for each in names if not (path := self.directory / each).exists())


def resolve_target(settings: Settings, given: Path | None) -> BackupTarget:
    """The place that a person names: a directory for backups, or a file that is to be one."""
    if given is None:
        return BackupTarget(settings.home.absolute() / "backups")
    path = given.expanduser().absolute()
    if not path.is_dir() and is_archive(path):
        if path.exists():
            raise InTheWay(f"{path} is there already", hint="Give another name, or remove it.")
        return BackupTarget(path.parent, path.name)
    if path.exists() and not path.is_dir():
        raise InTheWay(
            f"{path} is a file", hint="Give a directory, or a new file as `bullpen.tar.gz`."
        )
    if (path / MANIFEST_FILE).exists():
        raise InTheWay(
            f"{path} is a backup itself", hint="Give the directory in which the backups lie."
        )
    return BackupTarget(path)


def make_directory(directory: Path) -> None:
    """Make it, if it is not there; of parents the mode would be any."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(DIRECTORY_MODE, exist_ok=True)


def prune(directory: Path, keep: int, homes: tuple[str, ...]) -> list[Path]:
    """Remove the oldest backups of this home that have names of ours, but for so many; which."""
    ours = sorted((age, path) for path in directory.iterdir() if (age := _sort_key(path, homes)))
    old = [path for _, path in ours[: max(0, len(ours) - keep)]]
    for path in old:
        with staging_directory(directory) as grave:  # half removed it must not look like one
            path.rename(grave / path.name)
    return old


def _sort_key(path: Path, homes: tuple[str, ...]) -> tuple[str, int] | None:
    """When it was made, as it sorts; None of what is no backup of this home."""
    found = BACKUP_NAME.fullmatch(path.name)
    if found is None or path.is_symlink() or not path.is_dir():
        return None
    try:
        if not set(read_manifest(path).homes) & set(homes):
            return None
    except BadBackup:
        return None
    return found[1], int(found[2] or 1)
