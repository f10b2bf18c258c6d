"""A backup in one file, as it is carried elsewhere: a tar archive, compressed if so named."""

from __future__ import annotations

import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from bullpen.core.backup.disk import DIRECTORY_MODE, create_file
from bullpen.core.errors import BackupFailed, BadBackup

UNPACK_CHUNK_BYTES = 1 << 20
ARCHIVE_MODES: dict[str, Literal["w", "w:gz"]] = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz"}
READ_ERRORS = (tarfile.TarError, zlib.error, EOFError, ValueError)


def is_archive(path: Path) -> bool:
    """Whether a backup of this name is one file."""
    return path.name.endswith(tuple(ARCHIVE_MODES))


def pack(directory: Path, target: Path, name: str) -> None:
    """Write the backup in this directory to a new file of a name as `x.tar.gz`."""
    mode = next(mode for ending, mode in ARCHIVE_MODES.items() if name.endswith(ending))
    with create_file(target) as file, tarfile.open(fileobj=file, mode=mode) as archive:
        archive.add(directory, arcname=_stem(name))


@contextmanager
def open_backup(path: Path, beside: Path | None = None) -> Iterator[Path]:
    """A backup as a directory; of one file, unpacked to a place that is gone afterwards."""
    if not path.exists():
        raise BadBackup(f"there is no backup {path}")
    if path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix=".bullpen-unpacked-", dir=beside) as place:
        yield _unpack(path, Path(place))


def _unpack(path: Path, place: Path) -> Path:
    """Nothing but plain files, each where it belongs, whatever the archive says."""
    tops = set()
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                pure = PurePosixPath(member.name)
                if pure.is_absolute() or ".." in pure.parts or not pure.parts:
                    raise BadBackup(f"{path} is no backup: it has {member.name[:100]!r} in it")
                tops.add(pure.parts[0])
                if member.isdir():
                    (place / pure).mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
                elif member.isreg():
                    (place / pure).parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
                    _extract(archive.extractfile(member), place / pure)
                else:
                    raise BadBackup(f"{path} is no backup: {member.name[:100]!r} is no plain file")
    except READ_ERRORS as error:
        raise BadBackup(f"{path} is damaged, or no backup: {error}") from error
    except OSError as error:
        if error.errno is None:  # of the compression, not of the disk
            raise BadBackup(f"{path} is damaged: {error}") from error
        raise BackupFailed(
            f"{path} cannot be unpacked: {error.strerror}",
            hint="Free some space where files for a while lie; TMPDIR names another place.",
        ) from error
    if len(tops) != 1:
        raise BadBackup(f"{path} is no backup")
    return place / tops.pop()


def _extract(source: IO[bytes] | None, target: Path) -> None:
    assert source is not None
    with source, create_file(target) as file:
        while piece := source.read(UNPACK_CHUNK_BYTES):
            file.write(piece)


def _stem(name: str) -> str:
    for ending in ARCHIVE_MODES:
        name = name.removesuffix(ending)
    return name or "backup"
