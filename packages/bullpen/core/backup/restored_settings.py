"""settings.toml of a home that is made from a backup: as it was, but for what is another's."""

from __future__ import annotations

from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from bullpen.core.backup.disk import write_file
from bullpen.core.backup.manifest import SETTINGS_FILE

INVALID_SETTINGS_FILE = "settings.toml.bak"
UTF8_BOM = b"\xef\xbb\xbf"


def restore_settings(backup: Path, home: Path, given: dict[str, str]) -> bool:
    """Write the settings with these values; one that is empty is left out. False if they are bad.

    The database is never the one that the old home names: that may live. What is no TOML lies
    beside, to be looked at, and counts no more.
    """
    try:
        data = (backup / SETTINGS_FILE).read_bytes().removeprefix(UTF8_BOM)
    except FileNotFoundError:
        data = b""
    try:
        document, good = tomlkit.parse(data.decode()), True
    except (TOMLKitError, UnicodeDecodeError):
        write_file(home / INVALID_SETTINGS_FILE, data)
        document, good = tomlkit.document(), False
    for name, value in given.items():
        document.pop(name, None)
        if value:
            document[name] = value
    text = tomlkit.dumps(document).encode()
    if text:
        write_file(home / SETTINGS_FILE, text)
    return good
