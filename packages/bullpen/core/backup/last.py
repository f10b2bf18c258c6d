"""When a home was backed up last, and where that backup lies."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.replace_file import replace_file
from bullpen.core.settings import Settings

LAST_BACKUP_FILE = "last-backup.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup that was made, and checked when it was."""

    path: Path
    made_at: int
    """The moment of the data in it, not that of its end."""
    size: int
    """In bytes."""

    @property
    def there(self) -> bool:
        """Whether it still lies there; it may be on a disk that is not connected."""
        return self.path.exists()


def last_backup(settings: Settings) -> Backup | None:
    """The last backup of this home; None if there never was one, or it is not known any more."""
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
    """Note that this is the last one."""
    found = {"path": str(backup.path), "made_at": backup.made_at, "size": backup.size}
    replace_file(settings.home / LAST_BACKUP_FILE, json.dumps(found).encode(), 0o600)
