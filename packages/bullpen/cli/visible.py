"""Text of others as it may be shown: no control character of theirs reaches the terminal."""

from __future__ import annotations

import unicodedata

import click

KEPT = "\n\t"
SIGN = "\N{REPLACEMENT CHARACTER}"
ODD = ("Cc", "Cs", "Zl", "Zp")
# Marks that turn the direction of what follows make a command look like another.
TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(text: str) -> str:
    """The text without what would move the cursor, set a title or turn what follows around."""
    if text.isprintable():
        return text if TURNS.isdisjoint(text) else _plain(text)
    return _plain(click.unstyle(text).replace("\r\n", "\n"))


def one_line(text: str, most: int) -> str:
    """The text in one line, cut at so many columns of a terminal."""
    from rich.cells import cell_len, set_cell_size  # only here: the command line begins without

    line = visible(" ".join(text.split()))
    return line if cell_len(line) <= most else f"{set_cell_size(line, most - 1).rstrip()}…"


def _plain(text: str) -> str:
    return "".join(
        SIGN if each not in KEPT and (unicodedata.category(each) in ODD or each in TURNS) else each
        for each in text
    )
