"""The index of what an agent remembers, and of its skills: one line for each file."""

from __future__ import annotations

from pathlib import Path

from bullpen.core.answers.said import sanitise_text
from bullpen.core.workspace.front_matter import read_front_matter

MAX_INDEX_ENTRIES = 200
"""So many memories are listed; an agent with more keeps an index of its own."""
MAX_LINE_CHARS = 300


def memory_index(home: Path) -> list[str]:
    """Each memory's path, name and summary."""
    files = sorted((home / "memory").rglob("*.md"))
    lines = [_file_line(home, path, "name", "summary") for path in files[:MAX_INDEX_ENTRIES]]
    if len(files) > MAX_INDEX_ENTRIES:
        lines.append(f"- and {len(files) - MAX_INDEX_ENTRIES} more files in memory/")
    return lines


def skill_index(home: Path) -> list[str]:
    """Each skill's path, name and description."""
    files = sorted((home / "skills").glob("*/SKILL.md"))
    lines = [_file_line(home, path, "name", "description") for path in files[:MAX_INDEX_ENTRIES]]
    if len(files) > MAX_INDEX_ENTRIES:
        lines.append(f"- and {len(files) - MAX_INDEX_ENTRIES} more directories in skills/")
    return lines


def _file_line(home: Path, path: Path, name: str, about: str) -> str:
    found = read_front_matter(path)
    return index_line(str(path.relative_to(home)), found.get(name) or path.stem, found.get(about))


def index_line(path: str, name: str, about: str | None) -> str:
    """What the index has of one file."""
    text = " ".join((name, "—", about or "(says nothing of itself)"))
    return f"- {_single_line(path)}: {_single_line(text)[:MAX_LINE_CHARS]}"


def _single_line(text: str) -> str:
    """The text in one line, of what can be stored and sent."""
    return " ".join(sanitise_text(text).split())
