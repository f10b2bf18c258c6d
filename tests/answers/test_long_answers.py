"""A long text: all of it in a file, and a preview that ends where a word does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bullpen.core.answers.attachments import shorten_to_file

WORDS = "lorem ipsum dolor " * 500


def test_a_text_of_exactly_the_limit_is_left_as_it_is(tmp_path: Path) -> None:
    assert shorten_to_file("x" * 4000, 4000, tmp_path, "answer") == ("x" * 4000, ())
    assert list(tmp_path.iterdir()) == []


def test_one_character_more_is_a_file_and_a_preview(tmp_path: Path) -> None:
    text = "y" * 4001
    preview, (file,) = shorten_to_file(text, 4000, tmp_path / "files", "answer_cli_1")
    assert Path(file).read_text() == text
    assert Path(file).parent == tmp_path / "files"
    assert preview.startswith("y" * 4000 + "\n\n…")
    assert "1 more character" in preview
    assert Path(file).name in preview


def test_the_preview_ends_with_a_word(tmp_path: Path) -> None:
    preview, _ = shorten_to_file(WORDS, 4000, tmp_path, "answer")
    beginning, _, note = preview.rpartition("\n\n…")
    assert WORDS.startswith(beginning)
    assert beginning.split()[-1] in ("lorem", "ipsum", "dolor")
    assert 3900 < len(beginning) <= 4000
    assert f"({len(WORDS) - len(beginning)} more" in note


def test_a_word_that_ends_at_the_limit_is_still_shown(tmp_path: Path) -> None:
    preview, _ = shorten_to_file("word " * 100, 44, tmp_path, "answer")
    assert preview.partition("\n\n…")[0] == "word " * 8 + "word"


@pytest.mark.parametrize(("end", "at"), [("\n\n", 3100), ("\n", 3500), (" ", 3900), (" ", 4000)])
def test_a_paragraph_is_a_better_end_than_a_line_and_a_line_than_a_word(
    tmp_path: Path, end: str, at: int
) -> None:
    text = ("x" * at + end).ljust(5000, "x")
    preview, _ = shorten_to_file(text, 4000, tmp_path, "answer")
    assert preview.partition("\n\n…")[0] == "x" * at


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/cron.d/x",
        "/abs",
        "a/b",
        "..",
        ".hidden",
        "",
        "\n",
        "ä☃",
        "x" * 5000,
        "a\0b",
        "-rf",
    ],
)
def test_the_file_lies_in_its_directory_whatever_it_is_named_after(
    tmp_path: Path, name: str
) -> None:
    _, (file,) = shorten_to_file("long text", 4, tmp_path / "files", f"answer_{name}")
    _, (bare,) = shorten_to_file("long text", 4, tmp_path / "files", name)
    assert {Path(each).parent for each in (file, bare)} == {tmp_path / "files"}
    assert {str(each) for each in (tmp_path / "files").iterdir()} == {file, bare}
    assert file.isascii()
    assert bare.isascii()


def test_another_text_never_takes_the_place_of_one_that_was_sent_off(tmp_path: Path) -> None:
    _, (first,) = shorten_to_file("the first text", 4, tmp_path, "answer_cli_1")
    _, (stale,) = shorten_to_file("a late text", 4, tmp_path, "answer_cli_1")
    _, (again,) = shorten_to_file("the first text", 4, tmp_path, "answer_cli_1")
    assert first == again != stale
    assert Path(first).read_text() == "the first text"
    assert len(list(tmp_path.iterdir())) == 2


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    _, (file,) = shorten_to_file("long text", 4, tmp_path / "files", "answer")
    assert Path(file).stat().st_mode & 0o077 == 0
    assert (tmp_path / "files").stat().st_mode & 0o077 == 0


def test_a_disk_that_fails_leaves_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        shorten_to_file("long text", 4, tmp_path, "answer")
    assert list(tmp_path.iterdir()) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8")), st.integers(1, 50))
def test_nothing_of_a_text_is_lost(tmp_path: Path, text: str, most: int) -> None:
    preview, files = shorten_to_file(text, most, tmp_path, "answer")
    if len(text) <= most:
        assert (preview, files) == (text, ())
    else:
        assert Path(files[0]).read_bytes().decode() == text
        assert text.startswith(preview.rpartition("\n\n…")[0])
