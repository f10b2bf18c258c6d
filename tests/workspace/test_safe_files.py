"""Files below a directory that others write in: read, listed and written there alone."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from bullpen.core.errors import InTheWay, UnknownFile
from bullpen.core.workspace.safe_files import (
    MAX_DEPTH,
    MAX_ENTRIES,
    FileContent,
    Root,
    directories_inside,
    list_inside,
    open_inside,
    read_inside,
    write_inside,
)


def test_a_text_is_read_as_far_as_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.md").write_bytes(b"\xef\xbb\xbfab\0\xff")
    path = ("a", "b.md")
    assert read_inside(tmp_path, path) == FileContent(
        "ab\N{REPLACEMENT CHARACTER}" * 1 + "\ufffd", False
    )
    assert read_inside(tmp_path, path, 4) == FileContent("a", truncated=True)


@pytest.mark.parametrize("bad", ["..", ".", "", "a/b", "a\0b", "\ud800"])
def test_no_step_leads_elsewhere(tmp_path: Path, bad: str) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "home").mkdir()
    for parts in ((bad,), (bad, "secret"), ("home", bad, "secret"), ("home", bad)):
        with pytest.raises(UnknownFile):
            read_inside(tmp_path, parts)
        with pytest.raises(InTheWay):
            write_inside(tmp_path, (*parts, "new"), "text")
    assert list_inside(tmp_path, (bad,), "") == []
    assert directories_inside(tmp_path, (bad,), 9) == []
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["home", "secret"]


def test_no_link_is_followed_at_any_step(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "real" / "deep" / "a.md").write_text("x")
    (tmp_path / "real" / "deep" / "b.md").symlink_to("a.md")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "loop").symlink_to(".")
    for parts in (("link", "deep", "a.md"), ("real", "loop", "deep", "a.md")):
        with pytest.raises(UnknownFile):
            read_inside(tmp_path, parts)
    with pytest.raises(UnknownFile):
        read_inside(tmp_path, ("real", "deep", "b.md"))
    assert list_inside(tmp_path, ("real",), ".md") == ["deep/a.md"]
    assert list_inside(tmp_path, ("link",), ".md") == []
    assert directories_inside(tmp_path, ("real",), 9) == ["deep"]
    with pytest.raises(InTheWay):
        write_inside(tmp_path, ("link", "new.md"), "x")
    with pytest.raises(InTheWay):
        write_inside(tmp_path, ("real", "deep", "b.md"), "x")
    assert (tmp_path / "real" / "deep" / "a.md").read_text() == "x"


def test_a_file_that_is_written_keeps_its_mode_and_leaves_nothing_beside(tmp_path: Path) -> None:
    write_inside(tmp_path, ("a.md",), "one")
    assert (tmp_path / "a.md").stat().st_mode & 0o777 == 0o600
    (tmp_path / "a.md").chmod(0o640)
    write_inside(tmp_path, ("a.md",), "two ☃")
    assert (tmp_path / "a.md").read_text() == "two ☃"
    assert (tmp_path / "a.md").stat().st_mode & 0o777 == 0o640
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "p")
    for name in ("d", "p"):
        with pytest.raises(InTheWay):
            write_inside(tmp_path, (name,), "x")
        with pytest.raises(UnknownFile):
            read_inside(tmp_path, (name,))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.md", "d", "p"]


def test_a_listing_ends_however_much_there_is(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(MAX_DEPTH + 5):
        deep /= "d"
        deep.mkdir()
        (deep / "x.md").touch()
    assert len(list_inside(tmp_path, (), ".md")) == MAX_DEPTH
    for number in range(MAX_ENTRIES + 10):
        (tmp_path / f"{number}").touch()
    assert len(list_inside(tmp_path, (), "")) <= MAX_ENTRIES
    assert directories_inside(tmp_path, (), 0) == []


@pytest.mark.parametrize("step", [1, 2])
def test_what_is_swapped_for_a_link_meanwhile_is_never_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """An agent that swaps a directory for a link between two steps gains nothing."""
    home, outside = tmp_path / "home", tmp_path / "outside"
    for each in (home / "memory", outside):
        each.mkdir(parents=True)
        (each / "a.md").write_text(each.name)
    plain, opened = os.open, []

    def swapping(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        file = plain(path, flags, dir_fd=dir_fd)
        opened.append(path)
        if len(opened) == step:
            (home / "memory").rename(home / "away")
            (home / "memory").symlink_to(outside)
        return file

    monkeypatch.setattr(os, "open", swapping)
    try:
        found = read_inside(home, ("memory", "a.md")).text
    except UnknownFile:
        found = ""
    assert (len(opened), found) == ((1, "") if step == 1 else (3, "memory"))


def test_only_a_regular_file_with_one_name_is_opened(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "token").write_text("secret")
    (home / "plain").write_text("fine")
    os.link(tmp_path / "token", home / "hard")
    (home / "link").symlink_to("plain")
    os.mkfifo(home / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home / "socket"))
        for name in ("hard", "link", "pipe", "socket", ".", "", "none", "plain/x"):
            with pytest.raises((OSError, ValueError)):
                open_inside(home, (name,))
    for path in (("self", "environ"), ("self", "fd", "0"), ("self", "cwd", "x"), ("self", "root")):
        with pytest.raises((OSError, ValueError)):
            open_inside(Path("/proc"), path)
    with pytest.raises((OSError, ValueError)):
        open_inside(Path("/dev"), ("zero",))
    with open_inside(home, ("plain",)) as file:
        assert file.read() == b"fine"


def test_a_hard_link_that_is_removed_while_it_is_opened_gives_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the look at the open file its count of names is one: that of the secret itself."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "token").write_text("secret")
    plain = os.open

    def unlinking(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if path != "x":
            return plain(path, flags, dir_fd=dir_fd)
        os.link(tmp_path / "token", home / "x")
        file = plain(path, flags, dir_fd=dir_fd)
        (home / "x").unlink()
        return file

    monkeypatch.setattr(os, "open", unlinking)
    with pytest.raises(FileNotFoundError):
        open_inside(home, ("x",))


def test_a_file_that_is_replaced_while_it_is_opened_is_read_as_it_is_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")
    plain = os.open
    opened: list[str] = []

    def replacing(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        file = plain(path, flags, dir_fd=dir_fd)
        if path == "a" and not opened:
            opened.append(path)
            (tmp_path / "b").write_text("new")
            (tmp_path / "b").replace(tmp_path / "a")
        return file

    monkeypatch.setattr(os, "open", replacing)
    assert read_inside(tmp_path, ("a",)).text == "new"


def test_a_resolved_directory_is_opened_where_it_led_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "real" / "work").mkdir(parents=True)
    (tmp_path / "real" / "work" / "a").write_text("fine")
    (tmp_path / "other" / "work").mkdir(parents=True)
    (tmp_path / "other" / "work" / "a").write_text("secret")
    (tmp_path / "way").symlink_to("real")
    root = Root.resolved(tmp_path / "way" / "work")
    assert root.path == tmp_path / "real" / "work"
    (tmp_path / "real").chmod(0o300)  # to be passed through, not to be listed
    assert read_inside(root.anchor, (*root.parts, "a")).text == "fine"
    (tmp_path / "real").chmod(0o700)
    (tmp_path / "real").rename(tmp_path / "away")
    (tmp_path / "real").symlink_to("other")
    with pytest.raises(UnknownFile):
        read_inside(root.anchor, (*root.parts, "a"))
