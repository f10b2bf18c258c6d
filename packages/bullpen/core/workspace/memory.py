"""The index of what an agent remembers, and of its skills: one line for each file."""

from __future__ import annotations

from pathlib import Path

from bullpen.core.answers.said import clean
from bullpen.core.workspace.front_matter import front_matter

MOST = 200
"""So many memories are listed; an agent with more keeps an index of its own."""
LINE = 300


def memory_index(home: Path) -> list[str]:
    """Each memory's path, name and summary."""
    files = sorted((home / "memory").rglob("*.md"))
    lines = [_line(home, path, "name", "summary") for path in files[:MOST]]
    if len(files) > MOST:
        lines.append(f"- and {len(files) - MOST} more files in memory/")
    return lines


def skill_index(home: Path) -> list[str]:
    """Each skill's path, name and description."""
    files = sorted((home / "skills").glob("*/SKILL.md"))
    lines = [_line(home, path, "name", "description") for path in files[:MOST]]
    if len(files) > MOST:
        lines.append(f"- and {len(files) - MOST} more directories in skills/")
    return lines


def _line(home: Path, path: Path, name: str, about: str) -> str:
    found = front_matter(path)
    return line(str(path.relative_to(home)), found.get(name) or path.stem, found.get(about))


def line(path: str, name: str, about: str | None) -> str:
    """What the index has of one file."""
    text = " ".join((name, "—", about or "(says nothing of itself)"))
    return f"- {_plain(path)}: {_plain(text)[:LINE]}"


def _plain(text: str) -> str:
    """The text in one line, of what can be stored and sent."""
    return " ".join(clean(text).split())
