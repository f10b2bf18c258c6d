"""What a backup contains: the manifest, the tree of files and the archive."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Literal, TypeAlias

from bullpen.core.errors import BackupFailed, BadBackup
from bullpen.core.files import PRIVATE_DIRECTORY_MODE, create_file
from bullpen.core.uploads import UNFINISHED_DIRECTORY

MANIFEST_FILE = "manifest.json"
MANIFEST_FORMAT = 1
DATABASE_FILE = "bullpen.db"
SETTINGS_FILE = "settings.toml"
FILES, PLUGINS, WORKSPACE = "files", "plugins", "workspace"

CHUNK_BYTES = 1 << 20
ARCHIVE_MODES: dict[str, Literal["w", "w:gz"]] = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz"}
READ_ERRORS = (tarfile.TarError, zlib.error, EOFError, ValueError)

_UPLOADS = f"{FILES}/{UNFINISHED_DIRECTORY}"


ProgressCallback: TypeAlias = Callable[[str, int, int], None]
"""Called with the current step, the amount done and the total; a total of 0 is unknown."""


def ignore_progress(what: str, done: int, total: int) -> None:
    """Report nothing."""


def is_archive(path: Path) -> bool:
    """Whether a backup with this name is an archive."""
    return path.name.endswith(tuple(ARCHIVE_MODES))


def pack(directory: Path, target: Path, name: str) -> None:
    """Write a backup to a new archive; `name` decides its format."""
    mode = next(mode for ending, mode in ARCHIVE_MODES.items() if name.endswith(ending))
    with create_file(target) as file, tarfile.open(fileobj=file, mode=mode) as archive:
        archive.add(directory, arcname=_stem(name))


@contextmanager
def open_backup(path: Path, beside: Path | None = None) -> Iterator[Path]:
    """Open a backup as a directory; an archive is unpacked into a temporary one."""
    if not path.exists():
        raise BadBackup(f"backup {path} does not exist", hint="Check the path.")
    if path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix=".bullpen-unpacked-", dir=beside) as place:
        yield _unpack(path, Path(place))


def _unpack(path: Path, place: Path) -> Path:
    """Unpack plain files and directories only; a path outside the archive is an error."""
    tops = set()
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                pure = PurePosixPath(member.name)
                if pure.is_absolute() or ".." in pure.parts or not pure.parts:
                    raise BadBackup(f"{path} is not a backup: it contains {member.name[:100]!r}")
                tops.add(pure.parts[0])
                if member.isdir():
                    (place / pure).mkdir(PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
                elif member.isreg():
                    (place / pure).parent.mkdir(PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
                    _extract(archive.extractfile(member), place / pure)
                else:
                    raise BadBackup(
                        f"{path} is not a backup: {member.name[:100]!r} is not a plain file"
                    )
            # A compressed stream is checked where it ends, which is after the last member.
            while archive.fileobj.read(CHUNK_BYTES):
                pass
    except READ_ERRORS as error:
        raise BadBackup(f"{path} is damaged, or is not a backup: {error}") from error
    except OSError as error:
        if error.errno is None:  # an error of the compression, not of the disk
            raise BadBackup(f"{path} is damaged: {error}") from error
        raise BackupFailed(
            f"cannot unpack {path}: {error.strerror}",
            hint="Free some space in the directory for temporary files, or set TMPDIR to another.",
        ) from error
    if len(tops) != 1:
        raise BadBackup(f"{path} is not a backup")
    return place / tops.pop()


def _extract(source: IO[bytes] | None, target: Path) -> None:
    assert source is not None
    with source, target.open("xb") as file:
        shutil.copyfileobj(source, file, CHUNK_BYTES)


def _stem(name: str) -> str:
    for ending in ARCHIVE_MODES:
        name = name.removesuffix(ending)
    return name or "backup"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a backup."""

    path: str
    size: int
    sha256: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class LinkEntry:
    """A symbolic link. It is only in the manifest, because not every disk supports links."""

    path: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The contents of a backup, and their origin."""

    version: str
    """The version of Bullpen that made it."""
    revision: str
    """The revision of the database."""
    made_at: int
    kind: str
    """`sqlite` or `postgresql`: the original database. The copy is always an SQLite file."""
    homes: tuple[str, ...]
    """The path of the home, and its real path if that differs."""
    workspaces: tuple[str, ...]
    """The same of the workspace; its files are in the backup only if `with_workspace`."""
    with_workspace: bool
    files: tuple[FileEntry, ...]
    links: tuple[LinkEntry, ...]
    directories: tuple[str, ...]
    rows: Mapping[str, int]
    """The number of rows of each table."""

    @property
    def size(self) -> int:
        """The size in bytes, without the manifest."""
        return sum(each.size for each in self.files)


def serialize_manifest(manifest: Manifest) -> bytes:
    """Return the manifest as JSON, with a checksum of itself."""
    document = {"format": MANIFEST_FORMAT, **asdict(manifest)}
    return json.dumps({**document, "checksum": _checksum(document)}, indent=1).encode()


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest of a backup; raises BadBackup if it is missing or damaged."""
    try:
        document = json.loads((directory / MANIFEST_FILE).read_bytes())
    except FileNotFoundError:
        raise BadBackup(f"{directory} is not a backup: it has no {MANIFEST_FILE}") from None
    except (OSError, ValueError) as error:
        raise BadBackup(f"cannot read {MANIFEST_FILE}: {error}") from error
    if not isinstance(document, dict) or "checksum" not in document:
        raise BadBackup(f"{MANIFEST_FILE} is not a manifest of Bullpen")
    checksum = document.pop("checksum")
    if checksum != _checksum(document):
        raise BadBackup(f"{MANIFEST_FILE} is damaged: its checksum does not match")
    if document.pop("format", None) != MANIFEST_FORMAT:
        raise BadBackup(
            f"{MANIFEST_FILE} has a format that this version of Bullpen does not know",
            hint="Install the version of Bullpen that made the backup, or a later one.",
        )
    try:
        return _parse_manifest(document)
    except (KeyError, TypeError, ValueError) as error:
        raise BadBackup(f"{MANIFEST_FILE} is incomplete: {error}") from error


def _parse_manifest(document: Mapping[str, object]) -> Manifest:
    rows = document["rows"]
    if not isinstance(rows, dict):
        raise TypeError("invalid rows")
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
        raise TypeError("invalid list")
    return tuple(str(each) for each in found)


def _list(found: object) -> list[Mapping[str, str]]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise TypeError("invalid list")
    return found


def _safe_path(path: str) -> str:
    """Check that a path stays inside the backup and the restored home."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise ValueError(f"the path {path[:100]!r} is outside the backup")
    return path


def _checksum(document: Mapping[str, object]) -> str:
    plain = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


@dataclass(slots=True)
class CopiedTree:
    """The files copied so far, for the manifest."""

    files: list[FileEntry] = field(default_factory=list)
    links: list[LinkEntry] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)


def copy_tree(source: Path, backup: Path, name: str, copied: CopiedTree) -> None:
    """Copy a directory to this name in the backup; links are only recorded.

    Special files are left out, and so are files that disappear meanwhile.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        _copy_directory(source, backup, name, copied)


def _copy_directory(source: Path, backup: Path, name: str, copied: CopiedTree) -> None:
    entries = sorted(os.scandir(source), key=lambda entry: entry.name)
    (backup / name).mkdir(PRIVATE_DIRECTORY_MODE)
    copied.directories.append(name)
    for entry in entries:
        path, below = Path(entry.path), f"{name}/{entry.name}"
        with suppress(FileNotFoundError):
            if entry.is_symlink():
                copied.links.append(LinkEntry(below, os.readlink(path)))  # noqa: PTH115 - the target unresolved
            elif entry.is_dir(follow_symlinks=False):
                # A backup that copies its own directory would never end.
                if below != _UPLOADS and not path.samefile(backup.parent):
                    _copy_directory(path, backup, below, copied)
            elif entry.is_file(follow_symlinks=False):
                copied.files.append(copy_file(path, backup, below))


def copy_file(source: Path, directory: Path, name: str) -> FileEntry:
    """Copy one file; the entry describes the copy, even if the original changes."""
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as original:
        found = os.fstat(original.fileno())
        executable = bool(found.st_mode & stat.S_IXUSR)
        with create_file(directory / name) as copy:
            while piece := original.read(CHUNK_BYTES):
                digest.update(piece)
                size += len(piece)
                copy.write(piece)
        os.utime(directory / name, ns=(found.st_atime_ns, found.st_mtime_ns))
    return FileEntry(name, size, digest.hexdigest(), executable)


def hash_file(path: Path, name: str) -> FileEntry:
    """Return the entry of a file that is already in the backup."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(CHUNK_BYTES):
            digest.update(piece)
        return FileEntry(name, file.tell(), digest.hexdigest())
