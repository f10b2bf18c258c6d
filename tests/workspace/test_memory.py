"""The index of memories and skills: a line each, whatever the files are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bullpen.core.workspace.contents import (
    MAX_INDEX_ENTRIES,
    MAX_LINE_CHARS,
    memory_index,
    parse_front_matter,
    skill_index,
)
from bullpen.core.workspace.safe_files import read_inside

FRONT = "---\nname: {name}\nsummary: {summary}\ndescription: {summary}\n---\nThe text itself.\n"


def _remember(home: Path, path: str, text: str | bytes) -> None:
    file = home / "memory" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


def test_each_memory_is_a_line_with_its_path_name_and_summary(tmp_path: Path) -> None:
    _remember(tmp_path, "b.md", FRONT.format(name="Tea", summary="Ada drinks tea"))
    _remember(tmp_path, "people/ada.md", FRONT.format(name="Ada", summary="Who she is"))
    _remember(tmp_path, "notes.txt", "not one")
    assert memory_index(tmp_path) == [
        "- memory/b.md: Tea — Ada drinks tea",
        "- memory/people/ada.md: Ada — Who she is",
    ]


def test_without_a_directory_there_is_none(tmp_path: Path) -> None:
    assert (memory_index(tmp_path), skill_index(tmp_path)) == ([], [])


def test_each_skill_is_a_line(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / "skills" / name).mkdir(parents=True)
        text = FRONT.format(name=name, summary="Does it")
        (tmp_path / "skills" / name / "SKILL.md").write_text(text)
    (tmp_path / "skills" / "empty").mkdir()
    assert skill_index(tmp_path) == [
        "- skills/a/SKILL.md: a — Does it",
        "- skills/b/SKILL.md: b — Does it",
    ]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"---",
        b"---\n",
        b"---\nname: never ended\n",
        b"no front matter\n---\nname: x\n---\n",
        b"---\nname\nsummary\n---\n",
        b"---\n: x\n---\n",
        bytes(range(256)) * 100,
        b"\xff\xfe\x00",
        b"---\n" + b"x" * 10_000_000,
        b"---\n" + b"name: x\n" * 5000 + b"---\n",
    ],
)
def test_a_file_with_broken_front_matter_is_listed_by_its_name(tmp_path: Path, text: bytes) -> None:
    _remember(tmp_path, "odd.md", text)
    assert memory_index(tmp_path) == ["- memory/odd.md: odd — (no description)"]


def test_only_plain_files_are_listed_and_nothing_else_holds_a_run_up(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    (home / "memory" / "directory.md").mkdir(parents=True)
    for each in (outside, outside / "memory", outside / "x"):
        each.mkdir(parents=True)
        for name in ("SKILL.md", "secret.md"):
            (each / name).write_text(FRONT.format(name="SECRET", summary="SECRET"))
    os.mkfifo(home / "memory" / "pipe.md")
    (home / "memory" / "environ.md").symlink_to("/proc/self/environ")
    (home / "memory" / "endless.md").symlink_to("/dev/zero")
    (home / "memory" / "circle").symlink_to(".")
    (home / "memory" / "away").symlink_to(outside)
    (home / "memory" / "link.md").symlink_to(outside / "secret.md")
    os.link(outside / "secret.md", home / "memory" / "hard.md")
    (home / "skills" / "linked").mkdir(parents=True)
    (home / "skills" / "linked" / "SKILL.md").symlink_to(outside / "SKILL.md")
    (home / "skills" / "hard").mkdir()
    os.link(outside / "x" / "SKILL.md", home / "skills" / "hard" / "SKILL.md")
    (home / "skills" / "away").symlink_to(outside)
    assert memory_index(home) == ["- memory/hard.md: hard — (no description)"]
    assert skill_index(home) == []
    (home / "memory").rename(home / "old")
    (home / "memory").symlink_to(outside / "memory")
    assert memory_index(home) == []
    home.rename(tmp_path / "old")
    home.symlink_to(outside)
    assert (memory_index(home), skill_index(home)) == ([], [])


def test_of_thousands_only_the_first_are_listed_and_the_rest_counted(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    for number in range(2000):
        (tmp_path / "memory" / f"{number:04}.md").touch()
    lines = memory_index(tmp_path)
    assert len(lines) == MAX_INDEX_ENTRIES + 1
    assert lines[-1] == f"- and {2000 - MAX_INDEX_ENTRIES} more files in memory/"


def test_a_line_stays_a_line_and_short(tmp_path: Path) -> None:
    _remember(tmp_path, "long.md", FRONT.format(name="x" * 1000, summary="y"))
    _remember(tmp_path, "a\nb\u2028c.md", FRONT.format(name="n", summary="a\vb\x85c"))
    (tmp_path / "memory" / os.fsdecode(b"\xff.md")).write_text("x")
    lines = memory_index(tmp_path)
    assert len(lines) == 3
    for line in lines:
        assert len(line.splitlines()) == 1
        assert len(line) < MAX_LINE_CHARS + 100
        line.encode()


def test_front_matter_has_names_and_values(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_bytes(
        b"\xef\xbb\xbf---\r\nName: 'Ada'\r\nsummary: \"a: b\"\r\n  x :  y \r\n---\r\nz"
    )
    text = read_inside(tmp_path, ("x.md",)).text
    assert parse_front_matter(text) == {"name": "Ada", "summary": "a: b", "x": "y"}
