"""A secret is masked wherever an address can hide one, and nothing else is."""

from __future__ import annotations

import pytest
from sqlalchemy.engine import make_url

from bullpen.core.text import MASK, mask, mask_url, url_secrets


def test_a_mask_says_that_there_is_a_secret_and_nothing_of_it() -> None:
    assert mask("x") == mask("a much longer one") == MASK
    assert mask("") == ""


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", ""),
        ("sqlite:////home/ann/bullpen.db", "sqlite:////home/ann/bullpen.db"),
        ("postgresql://ann@host:5432/db", "postgresql://ann@host:5432/db"),
        ("postgresql://ann:hunter2@host:5432/db", f"postgresql://ann:{MASK}@host:5432/db"),
        ("postgresql://ann:p@ss@host/db", f"postgresql://ann:{MASK}@host/db"),
        ("postgresql://ann:pa/ss?w#d@host/db", f"postgresql://ann:{MASK}@host/db"),
        ("postgresql://:hunter2@/db", f"postgresql://:{MASK}@/db"),
        ("postgresql://ann@[::1]:5432/db", "postgresql://ann@[::1]:5432/db"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        (
            "postgresql://h/db?user=ann&password=hunter2&sslmode=require",
            f"postgresql://h/db?user=ann&password={MASK}&sslmode=require",
        ),
        ("http://h/v1?api_key=hunter2#x", f"http://h/v1?api_key={MASK}#x"),
        ("http://h/v1?token=", "http://h/v1?token="),
        ("http://[?token=hunter2", f"http://[?token={MASK}"),
        ("no address at all", "no address at all"),
    ],
)
def test_an_address_is_shown_without_what_is_secret_in_it(url: str, shown: str) -> None:
    assert mask_url(url) == shown
    assert mask_url(shown) == shown


@pytest.mark.parametrize("password", ["hunter2", "p@ss", "pa/ss", "a:b", "a b", "ä%41", "#?&="])
def test_a_password_is_known_as_it_is_written_and_as_it_is_meant(password: str) -> None:
    made = make_url("postgresql://ann@host/db").set(password=password)
    url = made.render_as_string(hide_password=False)
    assert make_url(url).password == password
    found = url_secrets(url)
    assert password in found
    assert all(each not in mask_url(url) for each in found)


def test_what_is_no_secret_is_not_taken_for_one() -> None:
    assert url_secrets("postgresql://ann@host:5432/db?sslmode=require&user=bob") == ()
    assert url_secrets("http://h/v1?x=1&key=a%20b") in (("a%20b", "a b"), ("a b", "a%20b"))
