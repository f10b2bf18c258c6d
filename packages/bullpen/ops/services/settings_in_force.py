"""The settings in force: what each service read from settings.toml when it started.

A service records a digest of the settings that it reads, in run/NAME.settings. If the digest of the
present file differs, the service was started before a change that concerns it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from bullpen.core.files import replace_file
from bullpen.core.settings import Settings
from bullpen.core.settings.file import services_reading
from bullpen.core.settings.parse import SETTINGS_FILE, check_values, read_settings

SUFFIX = ".settings"


def record_settings(settings: Settings, service: str) -> None:
    """Record which settings a service starts with."""
    with suppress(OSError):  # a full disk must not prevent the start
        digest = _digest(service, _read(settings.home))
        replace_file(_file(settings, service), digest.encode(), 0o600)


def services_with_old_settings(settings: Settings, services: Iterable[str]) -> list[str]:
    """The services among these that must restart before the present settings take effect.

    A service without a record may have any settings, so it is one of them.
    """
    present = _read(settings.home)
    return [each for each in services if _recorded(settings, each) != _digest(each, present)]


def _recorded(settings: Settings, service: str) -> str:
    try:
        return _file(settings, service).read_text(encoding="utf-8")
    except OSError:
        return ""


def _read(home: Path) -> dict[str, object]:
    """The valid values of the file. The environment of a service is not known here."""
    return check_values(read_settings(home / SETTINGS_FILE))[0]


def _digest(service: str, values: dict[str, object]) -> str:
    """The file has one digest of all settings together, from which no secret can be guessed."""
    read = sorted(
        (name, str(value)) for name, value in values.items() if services_reading([name], [service])
    )
    return hashlib.sha256(json.dumps(read).encode()).hexdigest()


def _file(settings: Settings, service: str) -> Path:
    return settings.run / f"{service}{SUFFIX}"
