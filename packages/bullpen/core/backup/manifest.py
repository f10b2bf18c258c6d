"""What a backup is: its list of contents, which says of each file what it must be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from bullpen.core.errors import BadBackup

MANIFEST_FILE = "manifest.json"
MANIFEST_FORMAT = 1
DATABASE_FILE = "bullpen.db"
SETTINGS_FILE = "settings.toml"
FILES, PLUGINS, WORKSPACE = "files", "plugins", "workspace"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of the backup."""

    path: str
    size: int
    sha256: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class LinkEntry:
    """A symbolic link, which is kept here only: not every disk can have one."""

    path: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What was backed up, when, and what must lie there."""

    version: str
    """Of the Bullpen that made it."""
    revision: str
    """Of the database's schema."""
    made_at: int
    kind: str
    """`sqlite` or `postgresql`: where the data lived. The copy is an SQLite file all the same."""
    homes: tuple[str, ...]
    """The paths of the home: as it is called, and its real one if that is another."""
    workspaces: tuple[str, ...]
    """Those of where the agents worked; their files are there only if `with_workspace`."""
    with_workspace: bool
    files: tuple[FileEntry, ...]
    links: tuple[LinkEntry, ...]
    directories: tuple[str, ...]
    rows: Mapping[str, int]
    """How many each table has."""

    @property
    def size(self) -> int:
        """In bytes, without the manifest."""
        return sum(each.size for each in self.files)


def serialize_manifest(manifest: Manifest) -> bytes:
    """As it is written, with a checksum of itself."""
    document = {"format": MANIFEST_FORMAT, **asdict(manifest)}
    return json.dumps({**document, "checksum": _checksum(document)}, indent=1).encode()


def read_manifest(directory: Path) -> Manifest:
    """The manifest of a backup; BadBackup if there is none, or it is not what was written."""
    try:
        document = json.loads((directory / MANIFEST_FILE).read_bytes())
    except FileNotFoundError:
        raise BadBackup(f"{directory} is no backup: it has no {MANIFEST_FILE}") from None
    except (OSError, ValueError) as error:
        raise BadBackup(f"{MANIFEST_FILE} cannot be read: {error}") from error
    if not isinstance(document, dict) or "checksum" not in document:
        raise BadBackup(f"{MANIFEST_FILE} is not one of Bullpen's")
    checksum = document.pop("checksum")
    if checksum != _checksum(document):
        raise BadBackup(f"{MANIFEST_FILE} is damaged: its checksum is another")
    if document.pop("format", None) != MANIFEST_FORMAT:
        raise BadBackup(
            f"{MANIFEST_FILE} is of a form that this Bullpen does not know",
            hint="Install the version of Bullpen that made the backup, or a later one.",
        )
    try:
        return _parse_manifest(document)
    except (KeyError, TypeError, ValueError) as error:
        raise BadBackup(f"{MANIFEST_FILE} lacks what it must have: {error}") from error


def _parse_manifest(document: Mapping[str, object]) -> Manifest:
    rows = document["rows"]
    if not isinstance(rows, dict):
        raise TypeError("its rows")
    return Manifest(
        version=str(document["version"]),
        revision=str(document["revision"]),
        made_at=int(str(document["made_at"])),
        kind=str(document["kind"]),
        homes=_texts(document["homes"]),
        workspaces=_texts(document["workspaces"]),
        with_workspace=document["with_workspace"] is True,
        files=tuple(
            FileEntry(
                path=_safe_path(each["path"]),
                size=int(each["size"]),
                sha256=str(each["sha256"]),
                executable=bool(each["executable"]),
            )
            for each in _list(document["files"])
        ),
        links=tuple(
            LinkEntry(_safe_path(each["path"]), str(each["target"]))
            for each in _list(document["links"])
        ),
        directories=tuple(_safe_path(each) for each in _texts(document["directories"])),
        rows={str(name): int(count) for name, count in rows.items()},
    )


def _texts(found: object) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise TypeError("its lists")
    return tuple(str(each) for each in found)


def _list(found: object) -> list[Mapping[str, str]]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise TypeError("its lists")
    return found


def _safe_path(path: str) -> str:
    """A path that cannot lead out of the backup, or of the home that is made of it."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise ValueError(f"the path {path[:100]!r} leads elsewhere")
    return path


def _checksum(document: Mapping[str, object]) -> str:
    plain = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()
