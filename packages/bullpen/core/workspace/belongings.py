"""What an agent has in its directory: its skills, and what it remembers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from bullpen.core.answers.said import sanitise_text
from bullpen.core.errors import UnknownFile
from bullpen.core.settings import Settings
from bullpen.core.workspace.confined import (
    FileContent,
    directories_inside,
    list_inside,
    read_inside,
)
from bullpen.core.workspace.front_matter import MAX_FRONT_MATTER_CHARS as FRONT_MATTER
from bullpen.core.workspace.front_matter import parse_front_matter
from bullpen.core.workspace.memory import MAX_INDEX_ENTRIES, index_line

SKILLS_DIRECTORY = "skills"
MEMORY_DIRECTORY = "memory"

MAX_MEMORY_FILES = 1000
"""So many files are listed by their paths."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill, and what it says of itself."""

    id: str
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """What an agent remembers: a line for each file, and the files by their paths."""

    index: str
    files: tuple[str, ...]


def list_skills(settings: Settings, agent: str) -> list[Skill]:
    """The skills of an agent, by id; a link to elsewhere is none."""
    found = []
    for each in directories_inside(
        settings.workspace, (agent, SKILLS_DIRECTORY), MAX_INDEX_ENTRIES
    ):
        about = _read_front_matter(settings, (agent, SKILLS_DIRECTORY, each, "SKILL.md"))
        if about is not None:
            name, text = about.get("name", each), about.get("description", "")
            found.append(Skill(sanitise_text(each), sanitise_text(name), sanitise_text(text)))
    return found


def list_memory(settings: Settings, agent: str) -> AgentMemory:
    """What an agent remembers; a link to elsewhere is not looked at."""
    files = list_inside(settings.workspace, (agent, MEMORY_DIRECTORY), ".md")
    lines = []
    for path in files[:MAX_INDEX_ENTRIES]:
        about = _read_front_matter(settings, (agent, MEMORY_DIRECTORY, *path.split("/"))) or {}
        name = about.get("name") or PurePosixPath(path).stem
        lines.append(index_line(f"{MEMORY_DIRECTORY}/{path}", name, about.get("summary")))
    if len(files) > MAX_INDEX_ENTRIES:
        lines.append(f"- and {len(files) - MAX_INDEX_ENTRIES} more files in {MEMORY_DIRECTORY}/")
    return AgentMemory("\n".join(lines), tuple(map(sanitise_text, files[:MAX_MEMORY_FILES])))


def read_memory(settings: Settings, agent: str, path: str) -> FileContent:
    """The text of one of its files."""
    return read_inside(settings.workspace, (agent, MEMORY_DIRECTORY, *path.split("/")))


def _read_front_matter(settings: Settings, parts: Sequence[str]) -> dict[str, str] | None:
    try:
        return parse_front_matter(read_inside(settings.workspace, parts, FRONT_MATTER).text)
    except UnknownFile:
        return None
