"""What people write, as plain text."""

from __future__ import annotations

import time

import pytest

from bullpen.channels import text_of_html, without_quote

MIB = 1 << 20


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>One &amp; two</p>\n <p>three</p>", "One & two\nthree"),
        ("<html><head><title>T</title></head><body class=x>a\n b</body></html>", "a b"),
        ("<style>a{}</style>x<script>if (a<b) {}</script>y", "xy"),
        ("one<br>two<ul><li>three<li>four</ul>", "one\ntwo\nthree\nfour"),
        ("1 &lt; 2 and <b>bold</b> <a href='x'>link</a>", "1 < 2 and bold link"),
        ("", ""),
    ],
)
def test_a_page_is_read_as_its_reader_sees_it(page: str, text: str) -> None:
    assert text_of_html(page) == text


@pytest.mark.parametrize("piece", ["<", "<p ", "<script>", "<body", "&", "<p>", "</style", "<!--"])
def test_a_hostile_page_takes_no_more_time_than_another(piece: str) -> None:
    began = time.process_time()
    text_of_html(piece * (MIB // len(piece)))
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("two\n\nOn Friday, Bot wrote:\n> ONE\n>\n> more\n", "two\n"),
        ("> a quote\nand an answer", "> a quote\nand an answer"),
        ("yes\n> quoted", "yes"),
        ("> only a quote", ""),
        ("no quote:", "no quote:"),
    ],
)
def test_a_quote_at_the_end_is_not_part_of_a_text(text: str, rest: str) -> None:
    assert without_quote(text) == rest
