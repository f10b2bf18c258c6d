"""Files in a list: only what is one, in an order that pages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bullpen.core.errors import StoreUnavailable, UnknownFile
from bullpen.core.uploads import list_files, remove_file

SECOND = 10**9


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Five files, a second apart."""
    for number in range(5):
        path = tmp_path / f"f{number}"
        path.write_bytes(b"x" * number)
        os.utime(path, ns=(0, number * SECOND))
    return tmp_path


def names(directory: Path, since: int | None = None, limit: int = 100) -> list[str]:
    """A page of them."""
    return [each.name for each in list_files(directory, since, limit)]


def test_the_newest_come_first_and_pages_follow_each_other(files: Path) -> None:
    assert names(files, limit=2) == ["f4", "f3"]
    page = list_files(files, 0, 2)
    assert [each.name for each in page] == ["f1", "f2"]
    assert names(files, page[-1].id) == ["f3", "f4"]
    assert (page[0].size, page[0].created_at, page[0].id) == (1, 1000, 1_000_000)


def test_where_no_file_came_yet_there_is_none(tmp_path: Path) -> None:
    assert names(tmp_path / "files") == []


def test_what_is_no_directory_is_said(tmp_path: Path) -> None:
    (tmp_path / "files").touch()
    with pytest.raises(StoreUnavailable):
        names(tmp_path / "files")


def test_what_is_no_file_is_neither_listed_nor_found_nor_removed(files: Path) -> None:
    (files / "inner").symlink_to(files / "f1")
    (files / "outer").symlink_to("/etc/passwd")
    (files / "gone").symlink_to(files / "nothing")
    (files / "directory").mkdir()
    (files / ".hidden").touch()
    os.mkfifo(files / "pipe")
    assert names(files) == ["f4", "f3", "f2", "f1", "f0"]
    assert (files / "f1").exists()


def test_a_removed_file_is_gone(files: Path) -> None:
    remove_file(files, "f2")
    assert names(files) == ["f4", "f3", "f1", "f0"]
    with pytest.raises(UnknownFile):
        remove_file(files, "f2")
