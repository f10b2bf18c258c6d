"""The database brought to this version's schema, with a backup of what was there before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bullpen.core.backup.make import back_up
from bullpen.core.backup.place import backup_place
from bullpen.core.backup.progress import Tell, tell_nobody
from bullpen.core.backup.rows import has_data
from bullpen.core.errors import BullpenError
from bullpen.core.store import migrate, schema
from bullpen.core.store.base import Store


@dataclass(frozen=True, slots=True)
class Upgraded:
    """What was done: from which revision, and where the backup of it is."""

    before: str | None
    """None if there was no database."""
    backup: Path | None
    """None if there was nothing to lose."""


def upgrade(store: Store, *, backup: bool = True, tell: Tell = tell_nobody) -> Upgraded:
    """Bring it to this version's schema; data of an earlier one are backed up before."""
    before = store.revision()
    kept = _backed_up(store, before, tell) if backup else None
    migrate.upgrade(store)
    return Upgraded(before, kept)


def _backed_up(store: Store, before: str | None, tell: Tell) -> Path | None:
    if before is None or before == schema.HEAD or before not in schema.KNOWN:
        return None
    if not has_data(store):
        return None
    try:
        return back_up(store, backup_place(store.settings, None), tell=tell).backup.path
    except BullpenError as error:
        error.hint = f"{error.hint} Or upgrade without a backup: bullpen db upgrade --no-backup"
        raise
