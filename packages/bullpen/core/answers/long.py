"""A text too long for a message becomes a file with a preview."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

TRUNCATION_NOTE = "… ({rest} more characters: the whole text is in the file {name})"
MAX_NAME_CHARS = 60

_UNSAFE_CHARS = re.compile(r"[^A-Za-z0-9_-]+")


def shorten_to_file(
    text: str, most: int, directory: Path, name: str
) -> tuple[str, tuple[str, ...]]:
    """The text and no file; or, if it is too long, its beginning and the file that has it all."""
    if len(text) <= most:
        return text, ()
    path = directory / _file_name(name, text)
    _write_durably(path, text)
    cut = _find_cut(text, most)
    note = TRUNCATION_NOTE.format(rest=len(text) - cut, name=path.name)
    return f"{text[:cut].rstrip()}\n\n{note}", (str(path),)


def _file_name(name: str, text: str) -> str:
    """A name of its own for this text.

    A client may have chosen what it is named after. And a run whose claim was lost may still come
    here: it must not write over what the next one has sent off.
    """
    known = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{_UNSAFE_CHARS.sub('_', name)[:MAX_NAME_CHARS]}_{known}.md"


def _write_durably(path: Path, text: str) -> None:
    """On the disk before the message that names it is."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        Path(unfinished).replace(path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _find_cut(text: str, most: int) -> int:
    """Where to end: after a paragraph, a line or a word, if one ends in the last quarter."""
    for end in ("\n\n", "\n", " "):
        at = text.rfind(end, most - most // 4, most + 1)
        if at > 0:
            return at
    return most
