"""Uploaded files: name, store, list and remove them."""

from __future__ import annotations

import errno
import hashlib
import heapq
import os
import re
import stat
import tempfile
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bullpen.core.clock import DAY, SECOND
from bullpen.core.errors import (
    BodyTooLarge,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnknownFile,
)
from bullpen.core.files import fsync_path, require_free_space
from bullpen.core.ids import Ids
from bullpen.core.settings import Settings

MAX_GIVEN_NAME_BYTES = 100
"""The most bytes that are kept of a file's original name."""
MAX_SUFFIX_CHARS = 16
MAX_FILE_NAME_BYTES = 255
MAX_NAME_TRIES = 100
CHUNK_BYTES = 1 << 20
NANOSECONDS_PER_MICROSECOND, NANOSECONDS_PER_MILLISECOND = 1_000, 1_000_000

UNFINISHED_DIRECTORY = ".uploads"
"""Inside the directory of files, so that a finished upload only needs a new name."""

_UNSAFE_CHARS = re.compile(r"[^\w.-]+")
SOURCE_HINT = "Check its path and permissions."

_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DENIED_ERRNOS = (errno.EACCES, errno.EPERM, errno.EROFS)


def safe_name(given: str) -> str:
    """A file name without characters that confuse a path, a shell or a reader."""
    last = re.split(r"[/\\]", given)[-1]
    name = _UNSAFE_CHARS.sub("_", unicodedata.normalize("NFC", last)).strip("._-")
    stem, dot, suffix = name.rpartition(".")
    if not dot or len(suffix) > MAX_SUFFIX_CHARS:
        stem, dot, suffix = name, "", ""
    room = MAX_GIVEN_NAME_BYTES - len(f"{dot}{suffix}".encode())
    cut = stem.encode()[:room].decode(errors="ignore")
    return f"{cut}{dot}{suffix}" or "file"


def check_file_name(name: str) -> str:
    """Check the name of a stored file: no path, and not hidden."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= MAX_FILE_NAME_BYTES or name.startswith(".") or "/" in name or "\0" in name:
        raise UnknownFile(f"file {name[:60]!a} does not exist")
    return name


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the directory of files."""

    id: int
    """The time when it was stored, in microseconds: the order and cursor of lists."""
    name: str
    size: int
    created_at: int


def list_files(directory: Path, since: int | None, limit: int) -> list[StoredFile]:
    """The newest files first; or those after an id, oldest first."""
    with translated_disk_errors():
        found = _scan_directory(directory)
        if since is None:
            return heapq.nlargest(limit, found, key=_sort_key)
        return heapq.nsmallest(limit, (each for each in found if each.id > since), key=_sort_key)


def remove_file(directory: Path, name: str) -> None:
    """Delete a stored file; messages that refer to it are kept."""
    path = directory / check_file_name(name)
    with translated_disk_errors():
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                raise FileNotFoundError
            path.unlink()
        except FileNotFoundError:
            raise UnknownFile(f"file {name[:60]!a} does not exist") from None


def _sort_key(file: StoredFile) -> tuple[int, str]:
    return file.id, file.name


def _scan_directory(directory: Path) -> Iterator[StoredFile]:
    try:
        entries = os.scandir(directory)
    except FileNotFoundError:
        return  # none was uploaded yet
    with entries:
        for entry in entries:
            if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
                continue
            try:
                known = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # removed just now
            at = known.st_mtime_ns
            yield StoredFile(
                at // NANOSECONDS_PER_MICROSECOND,
                entry.name,
                known.st_size,
                at // NANOSECONDS_PER_MILLISECOND,
            )


@dataclass(frozen=True, slots=True)
class SavedUpload:
    """A file that was stored."""

    name: str
    path: Path
    size: int
    sha256: str


class Upload:
    """A file being uploaded; `keep` gives it a name, `drop` deletes it otherwise."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._hash = hashlib.sha256()
        self._size = 0
        with translated_disk_errors():
            unfinished = directory / UNFINISHED_DIRECTORY
            for each in (
                directory,
                unfinished,
            ):  # with parents=True the mode is that of the last directory only
                each.mkdir(mode=0o700, parents=True, exist_ok=True)
            _delete_stale(unfinished)
            number, name = tempfile.mkstemp(dir=unfinished)
        self._path = Path(name)
        self._file: IO[bytes] = os.fdopen(number, "wb")

    def write(self, data: bytes) -> int:
        """Append bytes."""
        with translated_disk_errors():
            self._file.write(data)
        self._hash.update(data)
        self._size += len(data)
        return len(data)

    def seek(self, *_: int) -> int:
        """Do nothing: the file is read from the disk by its name."""
        return 0

    def keep(self, ids: Ids, given: str) -> SavedUpload:
        """Give the file a unique name that contains the given one."""
        safe = safe_name(given)
        with translated_disk_errors():
            self._file.flush()
            os.fsync(self._file.fileno())
            for name in _candidate_names(ids, safe):
                path = self._directory / name
                # Unlike a rename, a link never replaces another file.
                with suppress(FileExistsError):
                    os.link(self._path, path)
                    self._path.unlink()  # a file with two hard links is never sent
                    fsync_path(self._directory)
                    return SavedUpload(name, path, self._size, self._hash.hexdigest())
        raise StoreUnavailable(
            f"no unused file name found in {MAX_NAME_TRIES} attempts", hint="Try again."
        )

    def drop(self) -> None:
        """Close the file, and delete it unless it was kept."""
        with suppress(OSError):  # unwritten bytes are not needed any more
            self._file.close()
        self._path.unlink(missing_ok=True)


def _candidate_names(ids: Ids, safe: str) -> Iterator[str]:
    for _ in range(MAX_NAME_TRIES):
        yield f"{ids.new('file')}_{safe}"


def _delete_stale(unfinished: Path) -> None:
    """Delete the unfinished files of killed processes."""
    before = time.time() - DAY / SECOND
    for path in unfinished.iterdir():
        with suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()


def upload_copy(source: Path, settings: Settings, ids: Ids) -> SavedUpload:
    """Copy a file into the directory of files, under a unique name."""
    most = settings.upload_bytes
    try:
        file = source.open("rb")
    except OSError as error:
        raise UnknownFile(f"cannot read {source}: {error.strerror}", hint=SOURCE_HINT) from None
    with file:
        size = os.fstat(file.fileno()).st_size
        require_free_space(settings.home, settings.free_bytes_floor, size)
        incoming = Upload(settings.files)
        try:
            left = most
            while data := file.read(min(CHUNK_BYTES, left + 1)):
                left -= len(data)
                if left < 0:
                    raise BodyTooLarge(
                        f"{source} has more than {most} bytes",
                        hint="Send a smaller file; the limit is the setting `upload_bytes`.",
                    )
                incoming.write(data)
            return incoming.keep(ids, source.name)
        except OSError as error:
            raise UnknownFile(f"cannot read {source}: {error.strerror}", hint=SOURCE_HINT) from None
        finally:
            incoming.drop()


@contextmanager
def translated_disk_errors() -> Iterator[None]:
    """Raise disk errors in this block as `StoreError`."""
    try:
        yield
    except OSError as error:
        raise _translate(error) from error


def _translate(error: OSError) -> StoreError:
    why = error.strerror or type(error).__name__
    if error.errno in _FULL_ERRNOS:
        return StoreFull(f"cannot store the file: {why}")
    if error.errno in _DENIED_ERRNOS:
        return StoreReadOnly(
            f"cannot write to the directory of files: {why}",
            hint="Check the owner and permissions of the directory `files` in the home.",
        )
    return StoreUnavailable(
        f"cannot use the directory of files: {why}",
        hint="Check the directory `files` in the home, and its disk.",
    )
