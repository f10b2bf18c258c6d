"""A file that is opened is the one that was allowed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

from bullpen.core.answers import attachments as opening
from bullpen.core.answers.attachments import RefusedFile, open_allowed
from bullpen.core.workspace.safe_files import Root

Seen = Callable[[Path], None]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The agent's directory, with a file in it, and a secret beside it."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "sub" / "a.txt").write_text("fine")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.txt").write_text("secret")
    return work


def text(path: str, work: Path) -> str | None:
    """What is read of it; None if it is refused."""
    found = open_allowed(path, (Root(work),))
    if isinstance(found, RefusedFile):
        return None
    with found:
        return found.read().decode()


def test_a_file_below_the_directory_is_opened(work: Path) -> None:
    (work / "link").symlink_to("sub")
    for path in ("sub/a.txt", "link/a.txt", str(work / "sub" / "a.txt")):
        assert text(path, work) == "fine"


def test_a_directory_that_is_a_link_itself_is_one_all_the_same(work: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(work)
    assert text("sub/a.txt", tmp_path / "way") == "fine"


@pytest.mark.parametrize(
    "path",
    ["../secret/a.txt", "sub", ".", "none", "out/a.txt", "pipe", "a\0b", "x" * 5000, "/dev/zero"],
)
def test_nothing_else_is(work: Path, tmp_path: Path, path: str) -> None:
    (work / "out").symlink_to(tmp_path / "secret")
    os.mkfifo(work / "pipe")
    assert text(path, work) is None


@pytest.mark.parametrize("part", ["sub", "sub/a.txt"])
def test_a_link_that_is_put_in_its_place_meanwhile_is_not_followed(
    work: Path, tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swapped(path: str, roots: Sequence[Root]) -> tuple[Root, tuple[str, ...]]:
        (work / part).rename(work / "away")
        (work / part).symlink_to(tmp_path / "secret" / part.partition("/")[2])
        return roots[0], Path(path).parts

    monkeypatch.setattr(opening, "_find_root", swapped)
    assert text("sub/a.txt", work) is None


def test_a_pipe_that_is_put_in_its_place_meanwhile_keeps_nobody_waiting(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swapped(path: str, roots: Sequence[Root]) -> tuple[Root, tuple[str, ...]]:
        (work / path).unlink()
        os.mkfifo(work / path)
        return roots[0], Path(path).parts

    monkeypatch.setattr(opening, "_find_root", swapped)
    found: list[str | None] = []
    reader = threading.Thread(target=lambda: found.append(text("sub/a.txt", work)), daemon=True)
    reader.start()
    reader.join(60)
    assert found == [None]


def test_no_file_stays_open_that_was_refused(work: Path) -> None:
    before = psutil.Process().num_fds()
    for _ in range(20):
        text("sub/a.txt", work)
        text("sub", work)
        text("none", work)
    assert psutil.Process().num_fds() <= before
