"""Names of files: what people called them, and what can be one of ours."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bullpen.core.errors import UnknownFile
from bullpen.core.uploads import MAX_GIVEN_NAME_BYTES, check_file_name, safe_name

ANY = st.text(st.characters(exclude_categories=()))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ANY)
def test_a_safe_name_is_a_plain_one_whatever_was_given(given_name: str) -> None:
    name = safe_name(given_name)
    assert check_file_name(name) == name
    assert 0 < len(name.encode()) <= MAX_GIVEN_NAME_BYTES
    assert not name.startswith(("-", "."))
    assert name.isprintable()
    assert " " not in name
    assert safe_name(name) == name


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ada\\x.txt", "x.txt"),
        ("two words.txt", "two_words.txt"),
        ("archive.tar.gz", "archive.tar.gz"),
        ("U\N{COMBINING DIAERESIS}bung.md", "Übung.md"),
        ("..", "file"),
        ("", "file"),
        ("\0", "file"),
        ("a" * 200 + ".md", "a" * 97 + ".md"),
        ("x." + "y" * 200, "x." + "y" * 98),
    ],
)
def test_a_safe_name_is_what_a_person_would_know_it_by(given_name: str, name: str) -> None:
    assert safe_name(given_name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a/b", "/a", "a\0b", "\ud800", "x" * 256, "../a"], ids=ascii
)
def test_what_is_no_plain_name_is_not_there(name: str) -> None:
    with pytest.raises(UnknownFile):
        check_file_name(name)


def test_a_plain_name_may_have_what_a_file_may() -> None:
    for name in ("a b", "ö", "a..b", "-x", "x" * 255):
        assert check_file_name(name) == name
