"""A stream is cut into lines, whatever is in it, and takes no more memory than it may."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.processor.providers.command_line import LineBuffer

NOWHERE = Path("/nonexistent/overflow")


def cut(pieces: Sequence[bytes], most: int = 1000, overflow: Path = NOWHERE) -> list[str]:
    """All lines of these pieces."""
    with LineBuffer(most, overflow) as lines:
        return [line for piece in pieces for line in lines.feed(piece)] + lines.rest()


@given(st.lists(st.text().filter(lambda text: "\n" not in text and text.strip())), st.data())
def test_lines_are_the_same_however_they_arrive(lines: list[str], data: st.DataObject) -> None:
    whole = "\n".join(lines).encode()
    at = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    pieces = [whole[a:b] for a, b in zip([0, *at], [*at, len(whole)], strict=True)]
    assert cut(pieces, most=1_000_000) == lines


def test_empty_lines_are_none() -> None:
    assert cut([b"\n\n one \n  \n\r\ntwo"]) == [" one ", "two"]


def test_a_line_is_given_as_soon_as_it_is_whole() -> None:
    with LineBuffer(1000, NOWHERE) as lines:
        assert lines.feed(b"o") == []
        assert lines.feed(b"ne\nt") == ["one"]
        assert lines.rest() == ["t"]
        assert lines.rest() == []


def test_what_is_no_utf8_is_replaced_and_a_nul_is_kept() -> None:
    assert cut([b"a\xff\xfe\n\xc3", b"\xa9\0\n\xe2\x98"]) == ["a��", "é\0", "�"]


def test_a_line_of_700_kb_is_one_line() -> None:
    line = b"x" * 700_000
    pieces = [line[at : at + 65536] for at in range(0, len(line), 65536)]
    assert cut([*pieces, b"\nend"], most=8 << 20) == [line.decode(), "end"]


def test_no_file_is_made_of_what_may_be_kept(tmp_path: Path) -> None:
    with LineBuffer(10, tmp_path / "logs" / "rest") as lines:
        assert lines.feed(b"123\n5678\n") == ["123", "5678"]
        assert lines.cut is None
    assert list(tmp_path.iterdir()) == []


def test_what_is_over_is_in_the_file_and_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "rest"
    assert cut([b"123\n56", b"78\n90\n", b"end"], 8, path) == ["123", "5678", "90", "end"]
    assert path.read_bytes() == b"5678\n90\nend", "from the line on that was begun"
    assert path.stat().st_mode & 0o777 == 0o600


def test_where_the_rest_is_is_told(tmp_path: Path) -> None:
    with LineBuffer(3, tmp_path / "rest") as lines:
        lines.feed(b"1234")
        assert lines.cut == f"the output exceeds 3 bytes; all of it is in {tmp_path / 'rest'}"


def test_a_line_that_is_too_long_is_in_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "rest"
    assert cut([b"one\n", b"123456", b"789", b"0", b"\ntwo\n"], 8, path) == ["one", "two"]
    assert path.read_bytes() == b"1234567890\ntwo\n"


def test_a_file_that_cannot_be_written_loses_no_line(tmp_path: Path) -> None:
    (tmp_path / "logs").touch()
    assert cut([b"123456\n", b"7\n"], 3, tmp_path / "logs" / "rest") == ["7"]


@pytest.mark.parametrize("piece", [b"x" * 65536, b"x" * 65535 + b"\n", (b"x" * 999 + b"\n") * 65])
def test_it_never_takes_more_memory_than_it_may(tmp_path: Path, piece: bytes) -> None:
    most = 1 << 20
    tracemalloc.start()
    with LineBuffer(most, tmp_path / "rest") as lines:
        for _ in range(40 * most // len(piece)):
            lines.feed(piece)
        lines.rest()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * most
