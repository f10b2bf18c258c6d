"""Files on their way in: there when they are whole, and never in another's place."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import stat
from pathlib import Path

import pytest

from bullpen.core.clock import DAY, SECOND
from bullpen.core.errors import StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from bullpen.core.ids import Ids
from bullpen.core.uploads import (
    MAX_NAME_TRIES,
    UNFINISHED_DIRECTORY,
    Upload,
    translated_disk_errors,
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Where they go; it is not there yet."""
    return tmp_path / "home" / "files"


def shown(files: Path) -> list[str]:
    """What is there under a name."""
    return sorted(path.name for path in files.iterdir() if path.name != UNFINISHED_DIRECTORY)


def unfinished(files: Path) -> list[str]:
    """What is there under none."""
    return sorted(path.name for path in (files / UNFINISHED_DIRECTORY).iterdir())


def test_it_is_seen_when_it_is_whole(files: Path) -> None:
    incoming = Upload(files)
    incoming.write(b"hello ")
    assert shown(files) == []
    incoming.write(b"world")
    kept = incoming.keep(Ids(), "a.txt")
    assert kept.path.read_bytes() == b"hello world"
    assert (kept.size, kept.sha256) == (11, hashlib.sha256(b"hello world").hexdigest())
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(files.stat().st_mode) == 0o700
    assert kept.path.stat().st_nlink == 1
    incoming.drop()
    assert shown(files) == [kept.name]
    assert unfinished(files) == []
    assert kept.path.stat().st_nlink == 1


def test_what_is_dropped_was_never_there(files: Path) -> None:
    incoming = Upload(files)
    incoming.write(b"hello")
    incoming.drop()
    assert (shown(files), unfinished(files)) == ([], [])


def test_a_name_that_is_taken_is_not_taken_from_anybody(files: Path) -> None:
    numbers = itertools.count()
    ids = Ids(lambda: f"{next(numbers) // 2:08}")  # each comes twice
    for text in (b"one", b"two"):
        incoming = Upload(files)
        incoming.write(text)
        incoming.keep(ids, "same")
        incoming.drop()
    assert shown(files) == ["file_00000000_same", "file_00000001_same"]
    assert (files / "file_00000000_same").read_bytes() == b"one"


def test_a_link_that_waits_under_the_name_is_not_followed(files: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    files.mkdir(parents=True)
    (files / "file_00000000_a").symlink_to(target)
    incoming = Upload(files)
    numbers = itertools.count()
    kept = incoming.keep(Ids(lambda: f"{next(numbers):08}"), "a")
    incoming.drop()
    assert kept.name == "file_00000001_a"
    assert not target.exists()


def test_when_every_name_is_taken_it_is_said(files: Path) -> None:
    files.mkdir(parents=True)
    (files / "file_00000000_a").touch()
    incoming = Upload(files)
    with pytest.raises(StoreUnavailable, match=str(MAX_NAME_TRIES)):
        incoming.keep(Ids(lambda: "00000000"), "a")
    incoming.drop()
    assert unfinished(files) == []


def test_what_a_killed_process_left_behind_is_forgotten_after_a_day(files: Path) -> None:
    left = files / UNFINISHED_DIRECTORY
    left.mkdir(parents=True)
    for name, age in (("old", DAY + SECOND), ("new", DAY - 60 * SECOND)):
        path = left / name
        path.touch()
        at = path.stat().st_mtime - age / SECOND
        os.utime(path, (at, at))
    Upload(files).drop()
    assert unfinished(files) == ["new"]


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StoreFull),
        (errno.EDQUOT, StoreFull),
        (errno.EFBIG, StoreFull),
        (errno.EROFS, StoreReadOnly),
        (errno.EACCES, StoreReadOnly),
        (errno.EIO, StoreUnavailable),
    ],
    ids=str,
)
def test_what_the_disk_could_not_do_is_told_in_our_words(
    number: int, kind: type[StoreError]
) -> None:
    with pytest.raises(kind) as caught, translated_disk_errors():
        raise OSError(number, os.strerror(number))
    assert os.strerror(number) in str(caught.value)
    assert caught.value.hint
