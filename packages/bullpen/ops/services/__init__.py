"""The services of a home: their program files, the supervisor and the crash guard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bullpen.core.settings import Settings

SUPERVISOR_VARIABLE = "BULLPEN_SUPERVISOR"
"""The environment variable with the process id of the supervisor, for what it starts."""

SUPERVISED_VARIABLE = "SUPERVISOR_PROCESS_NAME"
"""The environment variable that supervisord sets for each service that it starts."""

LOCK_SUFFIX = ".lock"


def lock_file(settings: Settings, name: str) -> Path:
    """The path of a service's lock."""
    return settings.run / f"{name}{LOCK_SUFFIX}"
