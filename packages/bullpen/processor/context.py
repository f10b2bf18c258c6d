"""The input of a run: prompt, system prompt, teammates, memory, notes and session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import and_, bindparam, or_, select

from bullpen.core.errors import UnknownAgent, UnknownFile
from bullpen.core.ids import run_token
from bullpen.core.message import HEARTBEAT, Claim, Message
from bullpen.core.models import AGENT_MESSAGES
from bullpen.core.models.base import const, decode_texts
from bullpen.core.roster.agents import Agent, Sandbox, agent_names, find_agent
from bullpen.core.roster.providers import CUSTOM_PREFIX, CustomProvider, find_custom_provider
from bullpen.core.roster.sessions import Session, find_session, session_key
from bullpen.core.roster.teams import Team, teams_of
from bullpen.core.settings import Settings
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.workspace.contents import memory_index, skill_index
from bullpen.core.workspace.safe_files import Root, read_inside
from bullpen.core.workspace.templates import (
    MAX_AGENTS_FILE_CHARS,
    PROTOCOL_FILE,
    protocol_template,
    split_protocol,
    write_templates,
)
from bullpen.processor.marks import mark_message, mark_notes, mark_number
from bullpen.processor.providers.base import RunRequest

H = AGENT_MESSAGES.c

MAX_UTF8_BYTES = 4
"""The most bytes of one character."""

SANDBOX_NOTE = """# Your sandbox

You work in a sandbox without the command `bullpen`. Skills that use it do not work.
"""

# Proactive messages and Bullpen's notices are not answers: notes before them are still needed.
LATEST_ENTRIES: Statement[tuple[int, str, str]] = Statement(
    lambda: (
        select(H.id, H.role, H.content)
        .where(
            H.agent_id == bindparam("agent"),
            or_(
                H.role == const("note"),
                and_(H.role == const("assistant"), H.sender == H.agent_id),
            ),
            H.message_id.not_like(const("proactive\\_%"), escape="\\"),
            H.channel != const(HEARTBEAT),
        )
        .order_by(H.id.desc())
        .limit(const(20))
    )
)


@dataclass(frozen=True, slots=True)
class AgentContext:
    """The agent of a claim, and what the store knows about it."""

    agent: Agent
    key: str | None
    """The key of the session that this run continues; None for a heartbeat."""
    session: Session | None
    custom: CustomProvider | None
    teams: tuple[Team, ...]
    names: dict[str, str]
    notes: tuple[str, ...]
    """The parts of its last answer that failed, oldest first."""

    def request(self, claim: Claim, settings: Settings, texts: Sequence[str]) -> RunRequest:
        """Write the templates of the agent's directory, and build the request."""
        home = settings.workspace / self.agent.id
        write_templates(home)
        return RunRequest(
            agent=self.agent,
            texts=tuple(texts),
            prompt=build_prompt(texts, self.notes),
            system=build_system_prompt(self.agent, home, self.teams, self.names),
            home=home,
            directory=Path(self.agent.directory) if self.agent.directory else home,
            session=self.session,
            custom=self.custom,
            files=tuple(
                Path(file) for message in claim.messages for file in decode_texts(message.files)
            ),
            heartbeat=claim.primary.channel == HEARTBEAT,
            run=run_token(claim.token),
        )


def load_context(tx: Transaction, claim: Claim) -> AgentContext:
    """Read the context of a claim."""
    agent = find_agent(tx, claim.agent)
    if agent is None:
        raise UnknownAgent(f"agent {claim.agent!r} does not exist any more")
    is_heartbeat = claim.primary.channel == HEARTBEAT
    key = None if is_heartbeat else session_key(agent, claim.primary)
    custom = None
    if agent.provider.startswith(CUSTOM_PREFIX):
        custom = find_custom_provider(tx, agent.provider.removeprefix(CUSTOM_PREFIX))
    return AgentContext(
        agent=agent,
        key=key,
        session=None if key is None else find_session(tx, agent, key),
        custom=custom,
        teams=tuple(teams_of(tx, agent.id)),
        names=agent_names(tx),
        notes=() if is_heartbeat else _notes(tx, agent.id),
    )


def message_texts(claim: Claim) -> list[str]:
    """The messages as the agent reads them."""
    return [message_text(message) for message in claim.messages]


def message_text(message: Message) -> str:
    """A message as the agent reads it: its author, unless a person wrote it, and its files."""
    return mark_message(message, decode_texts(message.files))


def build_prompt(texts: Sequence[str], notes: Sequence[str]) -> str:
    """The messages of one run as one text."""
    parts = list(texts)
    if len(parts) > 1:
        parts = [mark_number(number, len(parts), text) for number, text in enumerate(parts, 1)]
        parts.insert(0, f"{len(parts)} messages wait for you. Answer all of them in one answer.")
    if notes:
        parts.insert(0, mark_notes(list(notes)))
    return "\n\n".join(parts)


def build_system_prompt(
    agent: Agent, home: Path, teams: Sequence[Team], names: Mapping[str, str]
) -> str:
    """The protocol, the teammates, the skills and memories, and the agent's own text."""
    own = Root(home.parent, (home.name,))
    before, _, after = split_protocol(_read(own, PROTOCOL_FILE))
    parts = [
        protocol_template(),
        _teammates(agent, teams, names),
        _list_files(home, "# Your skills", "Read the file before you use one.", skill_index(home)),
        SANDBOX_NOTE if agent.sandbox is not Sandbox.NONE else "",
        _list_files(
            home, "# Your memory", "Read a file when its summary fits.", memory_index(home)
        ),
        _read(own, "SOUL.md"),
        before,
        after,
        agent.system_prompt,
        _directory_instructions(agent),
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _notes(tx: Transaction, agent: str) -> tuple[str, ...]:
    """The notes since the agent's last answer, oldest first."""
    notes = []
    for _, role, content in tx.all(LATEST_ENTRIES, {"agent": agent}):
        if role == "assistant":
            break
        if role == "note":
            notes.append(content)
    return tuple(reversed(notes))


def _teammates(agent: Agent, teams: Sequence[Team], names: Mapping[str, str]) -> str:
    lines = [f"# You and your teammates\n\nYou are {_mention(agent.id, names)}."]
    for team in teams:
        title = f"#{team.id}" + (f" ({team.name})" if team.name else "")
        lines.append(f"\nYour team {title}:")
        for member in team.members:
            marks = ["you"] if member == agent.id else []
            marks += ["leader"] if member == team.leader else []
            lines.append(
                f"- {_mention(member, names)}" + (f": {', '.join(marks)}" if marks else "")
            )
    if not teams:
        lines.append("You are in no team.")
    return "\n".join(lines)


def _mention(agent: str, names: Mapping[str, str]) -> str:
    name = names.get(agent)
    return f"@{agent} ({name})" if name else f"@{agent}"


def _list_files(home: Path, title: str, hint: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return f"{title}\n\nIn {home}. {hint}\n\n" + "\n".join(lines)


def _directory_instructions(agent: Agent) -> str:
    """The instructions in the agent's working directory, unless that is its own directory."""
    if not agent.directory:
        return ""
    root = Root.resolved(Path(agent.directory))
    for name in ("AGENTS.md", "CLAUDE.md"):
        if text := _read(root, name):
            return f"# Instructions of your working directory, {agent.directory}\n\n{text}"
    return ""


def _read(root: Root, name: str) -> str:
    """The text of a regular file; empty if it does not exist or is a link."""
    try:
        found = read_inside(
            root.anchor, (*root.parts, name), MAX_UTF8_BYTES * MAX_AGENTS_FILE_CHARS
        )
    except UnknownFile:
        return ""
    return found.text[:MAX_AGENTS_FILE_CHARS]
