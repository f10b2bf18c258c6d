"""The database brought to this version's schema, with a backup of what was there before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bullpen.core.backup.make import create_backup
from bullpen.core.backup.place import resolve_target
from bullpen.core.backup.progress import ProgressCallback, ignore_progress
from bullpen.core.backup.rows import has_data
from bullpen.core.errors import BullpenError
from bullpen.core.store import migrate, schema
from bullpen.core.store.base import Store


@dataclass(frozen=True, slots=True)
class UpgradeResult:
    """What was done: from which revision, and where the backup of it is."""

    before: str | None
    """None if there was no database."""
    backup: Path | None
    """None if there was nothing to lose."""


def upgrade_database(
    store: Store, *, backup: bool = True, tell: ProgressCallback = ignore_progress
) -> UpgradeResult:
    """Bring it to this version's schema; data of an earlier one are backed up before."""
    before = store.revision()
    kept = _backup_before(store, before, tell) if backup else None
    migrate.upgrade(store)
    return UpgradeResult(before, kept)


def _backup_before(store: Store, before: str | None, tell: ProgressCallback) -> Path | None:
    if before is None or before == schema.HEAD_REVISION or before not in schema.KNOWN_REVISIONS:
        return None
    if not has_data(store):
        return None
    try:
        return create_backup(store, resolve_target(store.settings, None), tell=tell).backup.path
    except BullpenError as error:
        error.hint = f"{error.hint} Or upgrade without a backup: bullpen db upgrade --no-backup"
        raise
