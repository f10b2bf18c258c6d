"""A file is written complete or not at all, and nobody's link is written through."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from bullpen.core.atomic_file import replace_file


def names(directory: Path) -> list[str]:
    """What lies there."""
    return [each.name for each in directory.iterdir()]


def test_it_is_written_with_the_mode_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_file(path, b"one", 0o600)
    replace_file(path, b"two", 0o640)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert names(tmp_path) == ["file"]


def test_a_link_that_is_there_is_replaced_and_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    path = tmp_path / "file"
    path.symlink_to(elsewhere)
    replace_file(path, b"ours", 0o600)
    assert elsewhere.read_text() == "mine"
    assert not path.is_symlink()
    assert path.read_bytes() == b"ours"


def test_what_cannot_be_put_there_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "directory"
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(path, b"x", 0o600)
    assert names(tmp_path) == ["directory"]


def test_whoever_reads_meanwhile_reads_one_of_both(tmp_path: Path) -> None:
    path = tmp_path / "file"
    texts = [letter * (1 << 16) for letter in (b"a", b"b")]
    replace_file(path, texts[0], 0o600)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            replace_file(path, texts[number % 2], 0o600)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for each in writers:
        each.start()
    try:
        assert all(path.read_bytes() in texts for _ in range(200))
    finally:
        stop.set()
        for each in writers:
            each.join(30)
    assert names(tmp_path) == ["file"]
