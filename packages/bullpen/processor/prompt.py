"""What an agent is told: about itself and its team, and the messages that it is to answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bullpen.core.answers.said import sanitise_text
from bullpen.core.message import ROOM, Message
from bullpen.core.roster.agent import Agent
from bullpen.core.roster.team import Team
from bullpen.core.workspace.memory import memory_index, skill_index
from bullpen.core.workspace.own_text import MAX_AGENTS_FILE_CHARS
from bullpen.core.workspace.templates import PROTOCOL_FILE, protocol_template, split_protocol


def system_prompt(agent: Agent, home: Path, teams: Sequence[Team], names: Mapping[str, str]) -> str:
    """The protocol, the teammates, the skills and memories, and the agent's own text."""
    before, _, after = split_protocol(_read(home / PROTOCOL_FILE))
    parts = [
        protocol_template(),
        _who(agent, teams, names),
        _files(home, "# Your skills", "Read the file before you use one.", skill_index(home)),
        _files(home, "# Your memory", "Read a file when it fits.", memory_index(home)),
        _read(home / "SOUL.md"),
        before,
        after,
        agent.system_prompt,
        _there(agent),
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def told(message: Message) -> str:
    """One message as the agent reads it: who says it, unless it is a person, and its files."""
    text = message.message
    if message.channel == ROOM:
        author = message.from_agent or " ".join(message.sender.split()) or "a person"
        text = f"[Chat room #{message.team_id} — @{author}]:\n{text}"
    elif message.from_agent is not None:
        text = f"[Message from teammate @{message.from_agent}]:\n{text}"
    files = json.loads(message.files) if message.files else []
    return "\n".join([text, *(f"[file: {file}]" for file in files)])


def prompt(texts: Sequence[str], notes: Sequence[str]) -> str:
    """All that is to be answered by one run."""
    parts = list(texts)
    if len(parts) > 1:
        parts = [f"[{number} of {len(parts)}]\n{text}" for number, text in enumerate(parts, 1)]
        parts.insert(0, f"{len(texts)} messages wait for you. Answer all of them in one answer.")
    if notes:
        listed = "\n".join(f"- {note}" for note in notes)
        parts.insert(0, f"[Bullpen, about your last answer]:\n{listed}")
    return "\n\n".join(parts)


def _there(agent: Agent) -> str:
    """What the directory says of itself in which the agent works, if that is not its own."""
    for name in ("AGENTS.md", "CLAUDE.md") if agent.directory else ():
        if text := _read(Path(agent.directory, name)):
            return f"# About {agent.directory}, where you work\n\n{text}"
    return ""


def _who(agent: Agent, teams: Sequence[Team], names: Mapping[str, str]) -> str:
    lines = [f"# You and your teammates\n\nYou are {_named(agent.id, names)}."]
    for team in teams:
        title = f"#{team.id}" + (f" ({team.name})" if team.name else "")
        lines.append(f"\nYour team {title}:")
        for member in team.members:
            marks = ["you"] if member == agent.id else []
            marks += ["leads it"] if member == team.leader else []
            lines.append(f"- {_named(member, names)}" + (f": {', '.join(marks)}" if marks else ""))
    if not teams:
        lines.append("You are in no team.")
    return "\n".join(lines)


def _named(agent: str, names: Mapping[str, str]) -> str:
    name = names.get(agent)
    return f"@{agent} ({name})" if name else f"@{agent}"


def _files(home: Path, title: str, hint: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return f"{title}\n\nIn {home}. {hint}\n\n" + "\n".join(lines)


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            return ""  # a pipe would be waited for, for ever
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return sanitise_text(file.read(MAX_AGENTS_FILE_CHARS))
    except OSError:
        return ""
