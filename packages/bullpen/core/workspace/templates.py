"""Puts the shipped files into an agent's directory, and newer ones later where nobody changed them.

What was put there is written down with its hash: a file that no longer has it is the user's.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bullpen.core.errors import UnknownFile
from bullpen.core.replace_file import replace_file
from bullpen.core.workspace.confined import read_inside

SHIPPED = Path(__file__).resolve().parent / "shipped"
MANIFEST = Path(".bullpen", "templates.json")
MADE = Path(".bullpen", "made_by_bullpen")
"""It says that Bullpen created the directory, and may delete it again."""
LINK = Path(".claude", "skills")
BEGIN = "<!-- bullpen: the protocol."
END = "<!-- bullpen: end of the protocol -->"
PROTOCOL = "AGENTS.md"
LARGEST = 1 << 20
"""What has more bytes was not put there by Bullpen."""


def furnish(home: Path) -> list[str]:
    """Bring a directory up to date; gives the files that were written."""
    made = not home.exists()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    for each in ("memory", "skills", ".bullpen", ".claude"):
        (home / each).mkdir(exist_ok=True, mode=0o700)
    if made:
        (home / MADE).touch()
    written = _put_all(home)
    link = home / LINK
    if not os.path.lexists(link) and not _elsewhere(home, str(LINK)):
        link.symlink_to(Path("..", "skills"))
    return written


@cache
def shipped() -> tuple[tuple[str, str], ...]:
    """Every shipped file: its path below the agent's directory, and its text."""
    return tuple(_shipped())


def _shipped() -> Iterator[tuple[str, str]]:
    for path in sorted(SHIPPED.rglob("*.md")):
        yield str(path.relative_to(SHIPPED)), path.read_text(encoding="utf-8")


def protocol() -> str:
    """The part of AGENTS.md that is Bullpen's own."""
    return split(dict(shipped())[PROTOCOL])[1]


def split(text: str) -> tuple[str, str, str]:
    """What stands before Bullpen's part of an AGENTS.md, that part, and what stands after it."""
    start = text.find(BEGIN)
    end = text.find(END, start)
    if start < 0 or end < 0:
        return text, "", ""
    end += len(END)
    return text[:start], text[start:end], text[end:]


def _put_all(home: Path) -> list[str]:
    known = _manifest(home)
    before = dict(known)
    written = []
    for name, text in shipped():
        if known.get(name) == _hash(text) or _elsewhere(home, name):
            continue
        there = _text(home / name)
        new = _next(name, text, there, known.get(name))
        if new is not None:
            _write(home / name, new)
            written.append(name)
        # Also if it was written by a run that died before it could write that down.
        if new is not None or there == text:
            known[name] = _hash(text)
    if known != before and not _elsewhere(home, str(MANIFEST)):
        _write(home / MANIFEST, json.dumps(known, indent=1, sort_keys=True))
    return written


def _elsewhere(home: Path, name: str) -> bool:
    """Whether a link leads out of the directory: nothing is put there."""
    return any((home / each).is_symlink() for each in Path(name).parents[:-1])


def _next(name: str, text: str, there: str | None, known: str | None) -> str | None:
    """What the file is to be now; None if it stays as it is."""
    if there is None:
        # A file that was put here once and is gone was removed on purpose.
        return text if known is None else None
    if _hash(there) == known:
        return text
    if name == PROTOCOL:
        before, own, after = split(there)
        new = split(text)[1]
        return before + new + after if own not in ("", new) else None
    return None


def _hash(text: str) -> str:
    return hashlib.sha256(_bytes(text)).hexdigest()


def _bytes(text: str) -> bytes:
    """The same bytes that were read, whatever they are."""
    return text.encode(errors="surrogateescape")


def _text(path: Path) -> str | None:
    """What is there; None if nothing is. What is no plain file is the user's, whatever it says.

    So is one that is too long to be anything of ours.
    """
    if not os.path.lexists(path):
        return None
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
        return ""
    return path.read_bytes().decode(errors="surrogateescape")


def _manifest(home: Path) -> dict[str, str]:
    try:
        found = json.loads(read_inside(home, MANIFEST.parts, LARGEST).text)
    except (UnknownFile, ValueError, RecursionError):
        return {}
    return {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = path.is_file() and not path.is_symlink()
    mode = stat.S_IMODE(path.stat().st_mode) if plain else 0o644
    replace_file(path, _bytes(text), mode)
