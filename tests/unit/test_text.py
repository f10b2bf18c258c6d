"""Which text may be stored."""

from __future__ import annotations

import pytest

from bullpen.core.errors import BadText, TextTooLong
from bullpen.core.text import check_text, describe_unknown, suggest


@pytest.mark.parametrize("text", ["a", "é" * 5, "🎉🎉", "\n\t\x01\x7f\ufffe\ufeff", "x" * 10])
def test_text_within_the_limit_passes_unchanged(text: str) -> None:
    assert check_text(text, 10) == text


@pytest.mark.parametrize("text", ["x" * 11, "é" * 6, "🎉🎉🎉"])
def test_the_limit_counts_bytes_and_not_characters(text: str) -> None:
    with pytest.raises(TextTooLong, match=f"{len(text.encode())} bytes"):
        check_text(text, 10)


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "a\udfff", "\udc80 x"])
def test_a_nul_or_half_a_surrogate_pair_is_refused(text: str) -> None:
    with pytest.raises(BadText, match="the payload"):
        check_text(text, 10, "the payload")


def test_an_error_about_text_can_itself_be_stored_and_printed() -> None:
    with pytest.raises(BadText) as caught:
        check_text("\ud800\0", 10)
    str(caught.value).encode()
    assert "\0" not in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("codre", "coder"), ("CODER", "coder"), ("reviwer", "reviewer"), ("stauts", "status")],
)
def test_the_known_name_most_like_the_typed_one_is_suggested(typed: str, meant: str) -> None:
    known = ["coder", "reviewer", "status", "code2"]
    assert suggest(typed, known) == f"Did you mean {meant!r}?"
    assert describe_unknown("agent", typed, known) == (
        f"agent {typed!r} does not exist. Did you mean {meant!r}?"
    )


def test_without_a_similar_name_nothing_is_suggested() -> None:
    assert suggest("zzz", ["coder"]) == ""
    assert suggest("coder", []) == ""
    assert describe_unknown("team", "x" * 99, ["coder"]) == f"team {'x' * 40!r} does not exist"
