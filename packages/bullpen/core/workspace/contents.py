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
HEARTBEAT_FILE = "heartbeat.md"

MAX_INDEX_ENTRIES = 200
"""Memories and skills that an index lists; an agent with more keeps its own index."""
MAX_MEMORY_FILES = 1000
"""Paths that a list of memory files has."""
MAX_LINE_CHARS = 300
MAX_FRONT_MATTER_CHARS = 4096
"""Characters at the beginning of a file in which front matter is expected."""


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
    """A line for each memory: path, name and summary."""
    files = sorted((home / "memory").rglob("*.md"))
    lines = [_file_line(home, path, "name", "summary") for path in files[:MAX_INDEX_ENTRIES]]
    if len(files) > MAX_INDEX_ENTRIES:
        lines.append(f"- and {len(files) - MAX_INDEX_ENTRIES} more files in memory/")
    return lines


def skill_index(home: Path) -> list[str]:
    """A line for each skill: path, name and description."""
    files = sorted((home / "skills").glob("*/SKILL.md"))
    lines = [_file_line(home, path, "name", "description") for path in files[:MAX_INDEX_ENTRIES]]
    if len(files) > MAX_INDEX_ENTRIES:
        lines.append(f"- and {len(files) - MAX_INDEX_ENTRIES} more directories in skills/")
    return lines


def _file_line(home: Path, path: Path, name: str, about: str) -> str:
    found = read_front_matter(path)
    return index_line(str(path.relative_to(home)), found.get(name) or path.stem, found.get(about))


def index_line(path: str, name: str, about: str | None) -> str:
    """The line of an index for one file."""
    text = " ".join((name, "—", about or "(says nothing of itself)"))
    return f"- {_single_line(path)}: {_single_line(text)[:MAX_LINE_CHARS]}"


def _single_line(text: str) -> str:
    """The text on one line, without characters that cannot be stored."""
    return " ".join(sanitise_text(text).split())


def list_skills(settings: Settings, agent: str) -> list[Skill]:
    """The skills of an agent by id; links are ignored."""
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
    """The memory of an agent; links are ignored."""
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
    """The text of one memory file."""
    return read_inside(settings.workspace, (agent, MEMORY_DIRECTORY, *path.split("/")))


def _read_front_matter(settings: Settings, parts: Sequence[str]) -> dict[str, str] | None:
    try:
        return parse_front_matter(
            read_inside(settings.workspace, parts, MAX_FRONT_MATTER_CHARS).text
        )
    except UnknownFile:
        return None


def heartbeat_path(settings: Settings, agent: str) -> Path:
    """The path of an agent's heartbeat prompt."""
    return settings.workspace / agent / HEARTBEAT_FILE


def read_heartbeat_text(settings: Settings, agent: str) -> str:
    """The heartbeat prompt; empty if it was removed, the shipped one if the agent never ran."""
    if not (settings.workspace / agent).exists():
        return dict(templates())[HEARTBEAT_FILE]
    try:
        return read_inside(settings.workspace, (agent, HEARTBEAT_FILE)).text
    except UnknownFile:
        return ""


def write_heartbeat_text(settings: Settings, agent: str, text: str) -> None:
    """Replace the heartbeat prompt; with an empty one the agent is not woken."""
    check_text(text, settings.message_bytes, "the text")
    write_inside(settings.workspace, (agent, HEARTBEAT_FILE), text)


def read_front_matter(path: Path) -> dict[str, str]:
    """The front matter of a file; empty if it has none or cannot be read."""
    try:
        if not path.is_file():
            return {}  # reading a pipe could block for ever
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            lines = file.read(MAX_FRONT_MATTER_CHARS).splitlines()
    except OSError:
        return {}
    return _parse_lines(lines)


def parse_front_matter(text: str) -> dict[str, str]:
    """The front matter of a text."""
    return _parse_lines(text[:MAX_FRONT_MATTER_CHARS].splitlines())


def _parse_lines(lines: list[str]) -> dict[str, str]:
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
