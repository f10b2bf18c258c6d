"""A file is written complete or not at all and is on the disk; a lock has one holder."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bullpen.core.files import create_file, file_lock, is_locked, replace_file


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


def test_a_new_file_is_private_and_never_takes_the_place_of_another(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with create_file(path) as file:
        file.write(b"one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError), create_file(path):
        pass
    assert path.read_bytes() == b"one"


@pytest.mark.parametrize("name", ["file", ""])
def test_a_lock_on_a_file_or_a_directory_has_one_holder(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with file_lock(path) as first, file_lock(path, 0.0) as second:
        assert first is not None
        assert second is None
        assert is_locked(path)
    assert not is_locked(path)
    with file_lock(path, 0.0) as again:
        assert again is not None


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    path, taken = tmp_path / "lock", threading.Event()

    def hold() -> None:
        with file_lock(path):
            taken.set()
            time.sleep(0.1)

    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(30)
    with file_lock(path, 30.0) as held:
        assert held is not None
    holder.join(30)


def test_a_lock_ends_with_its_process_though_a_forked_child_lives_on(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from bullpen.core.files import file_lock
with file_lock(Path(sys.argv[1]), 0.0):
    if os.fork():
        print(sys.stdin.readline(), flush=True)
        os._exit(0)
    sys.stdin = None
    print("forked", flush=True)
    os.read(int(sys.argv[2]), 1)
"""
    path = tmp_path / "lock"
    reading, writing = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path), str(reading)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[reading],
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"forked\n"
        assert is_locked(path)
        holder.kill()
        assert holder.wait(30) == -signal.SIGKILL
        freed = not is_locked(path)
        os.close(writing)
        os.close(reading)
    assert freed


def test_nobody_holds_a_lock_that_was_never_made(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "lock")
    assert names(tmp_path) == []


def test_a_file_and_its_name_are_on_the_disk_before_the_write_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []

    def fsync(number: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(number).st_mode), (tmp_path / "file").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    replace_file(tmp_path / "file", b"x")
    assert synced == [(False, False), (True, True)]
    with create_file(tmp_path / "new") as file:
        file.write(b"x")
    assert synced[2:] == [(False, True)]
