"""A text too long for a message becomes a file with a preview."""

from __future__ import annotations

import os
from pathlib import Path

NOTE = "… ({rest} more characters: the whole text is in the file {name})"


def shorten(text: str, most: int, path: Path) -> tuple[str, tuple[str, ...]]:
    """The text and no file; or, if it is too long, its beginning and the file that has it all."""
    if len(text) <= most:
        return text, ()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
    cut = _cut(text, most)
    note = NOTE.format(rest=len(text) - cut, name=path.name)
    return f"{text[:cut].rstrip()}\n\n{note}", (str(path),)


def _cut(text: str, most: int) -> int:
    """Where to end: after a paragraph, a line or a word, if one ends in the last quarter."""
    for end in ("\n\n", "\n", " "):
        at = text.rfind(end, most - most // 4, most)
        if at > 0:
            return at
    return most
