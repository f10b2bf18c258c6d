"""What stands in settings.toml, however it is called: a bad line costs only itself.

Settings are flat, `name = value` a line: the lines of a file that is no TOML are read one by one.
"""

from __future__ import annotations

import re
import stat
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from bullpen.core.errors import BadSetting

SETTINGS_FILE = "settings.toml"
DATABASE_SETTING = "database_url"
BOM = b"\xef\xbb\xbf"

_NAME = re.compile(r"""\s*\[*\s*["']?(?P<name>[a-z_][a-z0-9_-]{0,40})["']?\s*[=.\]]""")
_POSITION = re.compile(r" \(at (?:line \d+, column (?P<column>\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """Something in the file that does not count; no secret is in it."""

    line: int | None
    """None if it is about the file as a whole."""
    name: str
    """The setting that it is about; empty if nobody can tell."""
    text: str
    hint: str
    warning: bool = False
    """Nothing is lost by it: a name that no setting has."""

    @property
    def where(self) -> str:
        """The file, and the line in it."""
        return SETTINGS_FILE if self.line is None else f"{SETTINGS_FILE} line {self.line}"

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@dataclass(slots=True)
class SettingsText:
    """The names and values that can be read, and what cannot."""

    values: dict[str, object] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[SettingProblem] = field(default_factory=list)
    whole: bool = True
    """Whether it is TOML, so that it can be changed."""
    readable: bool = True
    """Whether anything is known of what it says."""


def read_settings(path: Path) -> SettingsText:
    """What stands in the file; nothing if there is no file."""
    try:
        data = _read_file(path)
    except FileNotFoundError:
        return SettingsText()
    except NotADirectoryError as error:
        raise BadSetting(
            f"the home {path.parent} is no directory", hint="Give another BULLPEN_HOME."
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        return _unreadable_file(reason, f"See to it that {path} can be read.", readable=False)
    if data is None:
        return _unreadable_file("it is no file", f"Put a file where {path} is, or nothing.")
    return parse_settings(data)


def parse_settings(data: bytes) -> SettingsText:
    """What these bytes say."""
    data = data.removeprefix(BOM)
    try:
        text = data.decode()
        values = tomllib.loads(text)
    except (ValueError, RecursionError):
        return _parse_by_lines(data)
    return SettingsText(values, _lines(text))


def _read_file(path: Path) -> bytes | None:
    """The file; None if what is there is none."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():  # what it says is not known; it may be on a disk that is not there
            raise OSError(0, f"it is a link to {path.readlink()}, which is not there") from None
        raise
    # A pipe would keep us waiting for ever; a device such as /dev/null is as good as a file.
    return path.read_bytes() if stat.S_ISREG(mode) or stat.S_ISCHR(mode) else None


def _unreadable_file(reason: str, hint: str, *, readable: bool = True) -> SettingsText:
    problem = SettingProblem(None, "", f"cannot be read: {reason}", hint)
    return SettingsText(problems=[problem], whole=False, readable=readable)


def _parse_by_lines(data: bytes) -> SettingsText:
    found = SettingsText(whole=False)
    table: dict[str, object] | None = None
    for number, raw in enumerate(data.split(b"\n"), 1):
        try:
            line = raw.decode().rstrip("\r")
            values = tomllib.loads(line)
        except (ValueError, RecursionError) as error:
            found.problems.append(_unreadable_line(number, raw, error))
            continue
        if table is not None and not line.lstrip().startswith("["):
            table.update(values)
            found.lines.update(dict.fromkeys(values.keys() - found.lines.keys(), number))
            continue
        if line.lstrip().startswith("["):
            table = {}
            values = dict.fromkeys(values, table)
        for name, value in values.items():
            if name in found.values:
                found.problems.append(_duplicate(number, name, found.lines[name]))
            else:
                found.values[name] = value
                found.lines[name] = number
    return found


def _lines(text: str) -> dict[str, int]:
    """Where each name stands first."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if named := _NAME.match(line):
            found.setdefault(named["name"], number)
    return found


def _unreadable_line(number: int, raw: bytes, error: Exception) -> SettingProblem:
    text = raw.decode(errors="replace").replace("\0", "")
    named = _NAME.match(text)
    name = named["name"] if named else ""
    if DATABASE_SETTING in text:  # however it stands there, somebody wanted a database of their own
        name = DATABASE_SETTING
    about = f"{name} cannot be read" if name else "this line cannot be read"
    return SettingProblem(
        number, name, f"{about}: {_reason(error)}", "Write `name = value`, text in quotes."
    )


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    text = str(error)
    place = _POSITION.search(text)
    if place is None:
        return text[:1].lower() + text[1:]
    words = text[: place.start()]
    where = f" at column {place['column']}" if place["column"] else " at its end"
    return words[:1].lower() + words[1:] + where


def _duplicate(number: int, name: str, first: int) -> SettingProblem:
    return SettingProblem(
        number,
        name,
        f"{printable_name(name)} stands in line {first} already",
        "Remove one of both.",
    )


def printable_name(name: str) -> str:
    """A name from the file that may be anything, as it may be printed."""
    return name[:60] if name.isprintable() else ascii(name[:60])
