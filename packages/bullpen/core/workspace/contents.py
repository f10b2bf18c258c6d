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

MAX_FRONT_MATTER_CHARS = 4096
"""Front matter is looked for in so many characters."""


def read_front_matter(path: Path) -> dict[str, str]:
    """Its names and values; nothing if the file has none or cannot be read."""
    try:
        if not path.is_file():
            return {}  # a pipe would be waited for, for ever
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            lines = file.read(MAX_FRONT_MATTER_CHARS).splitlines()
    except OSError:
        return {}
    return _parse_lines(lines)


def parse_front_matter(text: str) -> dict[str, str]:
    """The names and values at the top of this text."""
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
        return parse_front_matter(
            read_inside(settings.workspace, parts, MAX_FRONT_MATTER_CHARS).text
        )
    except UnknownFile:
        return None


HEARTBEAT_FILE = "heartbeat.md"


def heartbeat_path(settings: Settings, agent: str) -> Path:
    """Where it is."""
    return settings.workspace / agent / HEARTBEAT_FILE


def read_heartbeat_text(settings: Settings, agent: str) -> str:
    """What it says; nothing if somebody removed it, the shipped one if the agent never ran."""
    if not (settings.workspace / agent).exists():
        return dict(templates())[HEARTBEAT_FILE]
    try:
        return read_inside(settings.workspace, (agent, HEARTBEAT_FILE)).text
    except UnknownFile:
        return ""


def write_heartbeat_text(settings: Settings, agent: str, text: str) -> None:
    """Replace what it says; empty, the agent is woken no more."""
    check_text(text, settings.message_bytes, "the text")
    write_inside(settings.workspace, (agent, HEARTBEAT_FILE), text)
