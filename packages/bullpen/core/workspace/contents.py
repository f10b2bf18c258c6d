"""Files of a workspace that people edit: memory, skills and the heartbeat's prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bullpen.core.errors import UnknownFile
from bullpen.core.settings import Settings
from bullpen.core.text import check_text, sanitise_text
from bullpen.core.workspace.safe_files import (
    FileContent,
    directories_inside,
    list_inside,
    read_inside,
    write_inside,
)
from bullpen.core.workspace.templates import templates

SKILLS_DIRECTORY = "skills"
MEMORY_DIRECTORY = "memory"
SKILL_FILE = "SKILL.md"
HEARTBEAT_FILE = "heartbeat.md"

MAX_INDEX_ENTRIES = 200
"""The most memories or skills in an index; an agent with more keeps its own index."""
MAX_SKILLS = 1000
"""The most directories that are searched for skills."""
MAX_MEMORY_FILES = 1000
"""The most paths in a list of memory files."""
MAX_LINE_CHARS = 300
MAX_FRONT_MATTER_CHARS = 4096
"""The characters at the beginning of a file that may contain front matter."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill, from its front matter."""

    id: str
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """An agent's memory: an index, and the paths of its files."""

    index: str
    files: tuple[str, ...]


def memory_index(home: Path) -> list[str]:
    """A line for each memory: path, name and summary; links are ignored."""
    return _memory_lines(home, list_inside(home.parent, (home.name, MEMORY_DIRECTORY), ".md"))


def _memory_lines(home: Path, files: Sequence[str]) -> list[str]:
    lines = []
    for file in files[:MAX_INDEX_ENTRIES]:
        path = PurePosixPath(MEMORY_DIRECTORY, file)
        about = _read_front_matter(home, path.parts) or {}
        lines.append(index_line(str(path), about.get("name") or path.stem, about.get("summary")))
    if len(files) > MAX_INDEX_ENTRIES:
        lines.append(f"- and {len(files) - MAX_INDEX_ENTRIES} more files in {MEMORY_DIRECTORY}/")
    return lines


def skill_index(home: Path) -> list[str]:
    """A line for each skill: path, name and description; links are ignored."""
    found = _skills(home)
    lines = [
        index_line(f"{SKILLS_DIRECTORY}/{each}/{SKILL_FILE}", name, about)
        for each, name, about in found[:MAX_INDEX_ENTRIES]
    ]
    if len(found) > MAX_INDEX_ENTRIES:
        more = len(found) - MAX_INDEX_ENTRIES
        lines.append(f"- and {more} more directories in {SKILLS_DIRECTORY}/")
    return lines


def _skills(home: Path) -> list[tuple[str, str, str | None]]:
    """The directory, name and description of each skill."""
    found = []
    parts = (home.name, SKILLS_DIRECTORY)
    for each in directories_inside(home.parent, parts, MAX_SKILLS):
        about = _read_front_matter(home, (SKILLS_DIRECTORY, each, SKILL_FILE))
        if about is not None:
            found.append((each, about.get("name") or each, about.get("description")))
    return found


def index_line(path: str, name: str, about: str | None) -> str:
    """The line of an index for one file."""
    text = " ".join((name, "—", about or "(no description)"))
    return f"- {_single_line(path)}: {_single_line(text)[:MAX_LINE_CHARS]}"


def _single_line(text: str) -> str:
    """The text on one line, without characters that cannot be stored."""
    return " ".join(sanitise_text(text).split())


def list_skills(settings: Settings, agent: str) -> list[Skill]:
    """The skills of an agent by id; links are ignored."""
    return [
        Skill(sanitise_text(each), sanitise_text(name), sanitise_text(about or ""))
        for each, name, about in _skills(settings.workspace / agent)[:MAX_INDEX_ENTRIES]
    ]


def list_memory(settings: Settings, agent: str) -> AgentMemory:
    """The memory of an agent; links are ignored."""
    home = settings.workspace / agent
    files = list_inside(settings.workspace, (agent, MEMORY_DIRECTORY), ".md")
    lines = _memory_lines(home, files)
    return AgentMemory("\n".join(lines), tuple(map(sanitise_text, files[:MAX_MEMORY_FILES])))


def read_memory(settings: Settings, agent: str, path: str) -> FileContent:
    """The text of one memory file."""
    return read_inside(settings.workspace, (agent, MEMORY_DIRECTORY, *path.split("/")))


def _read_front_matter(home: Path, parts: Sequence[str]) -> dict[str, str] | None:
    """The front matter of a file; None if it cannot be read."""
    try:
        found = read_inside(home.parent, (home.name, *parts), MAX_FRONT_MATTER_CHARS)
    except UnknownFile:
        return None
    return parse_front_matter(found.text)


def heartbeat_path(settings: Settings, agent: str) -> Path:
    """The path of an agent's heartbeat prompt."""
    return settings.workspace / agent / HEARTBEAT_FILE


def read_heartbeat_text(settings: Settings, agent: str) -> str:
    """The heartbeat prompt; empty if it was removed, the shipped one before the first run."""
    if not (settings.workspace / agent).exists():
        return dict(templates())[HEARTBEAT_FILE]
    try:
        return read_inside(settings.workspace, (agent, HEARTBEAT_FILE)).text
    except UnknownFile:
        return ""


def write_heartbeat_text(settings: Settings, agent: str, text: str) -> None:
    """Replace the heartbeat prompt; an empty one disables heartbeats."""
    check_text(text, settings.message_bytes, "the text")
    write_inside(settings.workspace, (agent, HEARTBEAT_FILE), text)


def parse_front_matter(text: str) -> dict[str, str]:
    """The front matter of a text; empty if it has none."""
    lines = text[:MAX_FRONT_MATTER_CHARS].splitlines()
    if not lines or lines[0].strip() != "---":
        return {}
    found: dict[str, str] = {}
    for line in lines[1:]:
        if line.strip() == "---":
            return found
        name, colon, value = line.partition(":")
        if colon:
            found[name.strip().lower()] = value.strip().strip("\"'")
    return {}
