"""Text of others as it may be shown: no control character of theirs reaches the terminal."""

from __future__ import annotations

import unicodedata

import click

KEPT_CONTROLS = "\n\t"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
CONTROL_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")
# Marks that turn the direction of what follows make a command look like another.
BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def sanitize(text: str) -> str:
    """The text without what would move the cursor, set a title or turn what follows around."""
    if text.isprintable():
        return text if BIDI_CONTROLS.isdisjoint(text) else _replace_controls(text)
    return _replace_controls(click.unstyle(text).replace("\r\n", "\n"))


def one_line(text: str, most: int) -> str:
    """The text in one line, cut at so many columns of a terminal."""
    from rich.cells import cell_len, set_cell_size  # only here: the command line begins without

    line = sanitize(" ".join(text.split()))
    return line if cell_len(line) <= most else f"{set_cell_size(line, most - 1).rstrip()}…"


def _replace_controls(text: str) -> str:
    return "".join(
        REPLACEMENT
        if each not in KEPT_CONTROLS
        and (unicodedata.category(each) in CONTROL_CATEGORIES or each in BIDI_CONTROLS)
        else each
        for each in text
    )
