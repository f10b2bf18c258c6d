"""What an agent has in its directory: its skills, and what it remembers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from bullpen.core.answers.said import clean
from bullpen.core.errors import UnknownFile
from bullpen.core.settings import Settings
from bullpen.core.workspace.confined import Content, directories_inside, list_inside, read_inside
from bullpen.core.workspace.front_matter import MOST as FRONT_MATTER
from bullpen.core.workspace.front_matter import front_matter_of
from bullpen.core.workspace.memory import MOST, line

SKILLS = "skills"
MEMORY = "memory"

FILES = 1000
"""So many files are listed by their paths."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill, and what it says of itself."""

    id: str
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What an agent remembers: a line for each file, and the files by their paths."""

    index: str
    files: tuple[str, ...]


def list_skills(settings: Settings, agent: str) -> list[Skill]:
    """The skills of an agent, by id; a link to elsewhere is none."""
    found = []
    for each in directories_inside(settings.workspace, (agent, SKILLS), MOST):
        about = _about(settings, (agent, SKILLS, each, "SKILL.md"))
        if about is not None:
            name, text = about.get("name", each), about.get("description", "")
            found.append(Skill(clean(each), clean(name), clean(text)))
    return found


def list_memory(settings: Settings, agent: str) -> Memory:
    """What an agent remembers; a link to elsewhere is not looked at."""
    files = list_inside(settings.workspace, (agent, MEMORY), ".md")
    lines = []
    for path in files[:MOST]:
        about = _about(settings, (agent, MEMORY, *path.split("/"))) or {}
        name = about.get("name") or PurePosixPath(path).stem
        lines.append(line(f"{MEMORY}/{path}", name, about.get("summary")))
    if len(files) > MOST:
        lines.append(f"- and {len(files) - MOST} more files in {MEMORY}/")
    return Memory("\n".join(lines), tuple(map(clean, files[:FILES])))


def read_memory(settings: Settings, agent: str, path: str) -> Content:
    """The text of one of its files."""
    return read_inside(settings.workspace, (agent, MEMORY, *path.split("/")))


def _about(settings: Settings, parts: Sequence[str]) -> dict[str, str] | None:
    try:
        return front_matter_of(read_inside(settings.workspace, parts, FRONT_MATTER).text)
    except UnknownFile:
        return None
