"""Puts the shipped files into an agent's directory, and newer ones later where nobody changed them.

What was put there is written down with its hash: a file that no longer has it is the user's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SHIPPED = Path(__file__).resolve().parents[1] / "templates"
MANIFEST = Path(".bullpen", "templates.json")
MADE = Path(".bullpen", "made_by_bullpen")
"""It says that Bullpen created the directory, and may delete it again."""
BEGIN = "<!-- bullpen: the protocol."
END = "<!-- bullpen: end of the protocol -->\n"
PROTOCOL = "AGENTS.md"


def furnish(home: Path) -> list[str]:
    """Bring a directory up to date; gives the files that were written."""
    made = not home.exists()
    for each in ("memory", "skills", ".bullpen", ".claude"):
        (home / each).mkdir(parents=True, exist_ok=True, mode=0o700)
    known = _read(home / MANIFEST)
    written = [name for name, text in shipped() if _put(home, name, text, known)]
    if made:
        (home / MADE).touch()
    if written:
        known.update((name, _hash(text)) for name, text in shipped())
        _write(home / MANIFEST, json.dumps(known, indent=1, sort_keys=True))
    link = home / ".claude" / "skills"
    if not link.exists() and not link.is_symlink():
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
    start, end = text.find(BEGIN), text.find(END)
    if start < 0 or end < start:
        return text, "", ""
    return text[:start], text[start : end + len(END)], text[end + len(END) :]


def _put(home: Path, name: str, text: str, known: dict[str, str]) -> bool:
    path = home / name
    if not path.exists():
        # A file that was put here once and is gone was removed on purpose.
        if name in known:
            return False
        _write(path, text)
        return True
    if known.get(name) == _hash(text):
        return False
    there = path.read_text(encoding="utf-8", errors="replace")
    if name == PROTOCOL:
        before, own, after = split(there)
        new = split(text)[1]
        if not own or own == new or name not in known:
            return False
        _write(path, before + new + after)
        return True
    if name not in known or _hash(there) != known[name]:
        return False
    _write(path, text)
    return True


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
