"""Agents: their rows, names and directories."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypedDict

from sqlalchemy import bindparam, select

from bullpen.core.errors import BadName, UnknownAgent
from bullpen.core.models import AGENTS, TEAMS
from bullpen.core.routing.address import AddressBook
from bullpen.core.routing.tags import MAX_NAME_CHARS
from bullpen.core.settings import Settings
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text, describe_unknown
from bullpen.core.workspace.safe_files import Root

A = AGENTS.c

ECHO = "echo"
"""The built-in provider, which needs no account."""

HTTP = "http"
"""The provider of agents whose messages external workers claim."""

_LINE_BREAK_CATEGORIES = ("Cc", "Zl", "Zp")


class Permission(StrEnum):
    """What a run may do on this machine without approval."""

    READ = "read"
    EDIT = "edit"
    FULL = "full"
    """Everything: the checks of the provider are off."""


class Context(StrEnum):
    """Which messages share a session of the provider."""

    AGENT = "agent"
    SENDER = "sender"
    CHAT = "chat"
    """All of a chat, or of a thread in it."""
    CONVERSATION = "conversation"


class Scheduling(StrEnum):
    """For which agents an agent may create schedules."""

    NONE = "none"
    SELF = "self"
    TEAM = "team"
    """For itself and its teammates."""


class Reach(StrEnum):
    """The messages that the commands of a run may read, and the people they may write to."""

    CONVERSATION = "conversation"
    """Read the run's conversation; write to people who wrote to the agent."""
    PEOPLE = "people"
    """Read all messages of the agent; write to people who wrote to it."""
    ALL = "all"
    """Read everything, and write to any address."""


class Sandbox(StrEnum):
    """How the runs of an agent are isolated from this machine."""

    NONE = "none"
    BUBBLEWRAP = "bubblewrap"
    """Separate namespaces: the home, other workspaces and other processes are not visible."""
    USER = "user"
    """Another Unix user: the home, other workspaces and environments cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent."""

    id: str
    name: str = ""
    provider: str = ECHO
    model: str = ""
    """Empty is the default of the provider."""
    directory: str = ""
    """The working directory; empty is its own directory in the workspace."""
    system_prompt: str = ""
    permission: Permission = Permission.EDIT
    context: Context = Context.AGENT
    scheduling: Scheduling = Scheduling.SELF
    reach: Reach = Reach.CONVERSATION
    sandbox: Sandbox = Sandbox.NONE
    resets: int = 0


class AgentChange(TypedDict, total=False):
    """The fields of an agent to change."""

    name: str
    provider: str
    model: str
    directory: str
    system_prompt: str
    permission: Permission
    context: Context
    scheduling: Scheduling
    reach: Reach
    sandbox: Sandbox


FIND: Statement[Agent] = Statement(
    lambda: select(*columns(Agent, AGENTS)).where(A.id == bindparam("agent")), Agent
)

LIST: Statement[Agent] = Statement(lambda: select(*columns(Agent, AGENTS)).order_by(A.id), Agent)

AGENT_NAMES: Statement[tuple[str, str]] = Statement(
    lambda: select(AGENTS.c.id, AGENTS.c.name).order_by(AGENTS.c.id)
)

TEAM_NAMES: Statement[tuple[str, str, str]] = Statement(
    lambda: select(TEAMS.c.id, TEAMS.c.name, TEAMS.c.leader).order_by(TEAMS.c.id)
)


def find_agent(tx: Transaction, agent_id: str) -> Agent | None:
    """The agent of this id, if there is one."""
    return tx.one(FIND, {"agent": agent_id})


def get_agent(tx: Transaction, agent_id: str) -> Agent:
    """The agent of this id, which must exist."""
    check_text(agent_id, tx.settings.message_bytes, "the agent's id")
    agent = find_agent(tx, agent_id)
    if agent is None:
        raise UnknownAgent(describe_unknown("agent", agent_id, agent_names(tx)))
    return agent


def get_provider_name(tx: Transaction, agent: str) -> str:
    """The provider of this agent; `HTTP`, that of external workers, if the agent was removed."""
    row = find_agent(tx, agent)
    return HTTP if row is None else row.provider


def list_agents(tx: Transaction) -> list[Agent]:
    """All agents, by id."""
    return tx.all(LIST, {})


def agent_names(tx: Transaction) -> dict[str, str]:
    """The display name of each agent, by id."""
    return {agent: name for agent, name in tx.all(AGENT_NAMES, {})}  # noqa: C416 - rows


def load_address_book(tx: Transaction) -> AddressBook:
    """All agents and teams, with their names."""
    return AddressBook(
        agents=agent_names(tx),
        teams={team: (name, leader) for team, name, leader in tx.all(TEAM_NAMES, {})},
    )


def agent_home(settings: Settings, agent_id: str) -> Path:
    """The agent's own directory in the workspace."""
    return settings.workspace / agent_id


def files_root(settings: Settings) -> Root:
    """The directory of stored files; a conversation can send only its own files from it."""
    return Root(settings.home, ("files",), stored=True)


def allowed_roots(settings: Settings, agent: Agent) -> tuple[Root, ...]:
    """The directories from which its files may be sent: working directory, its own, and uploads.

    Nothing else in the home is ever sent. A directory in the home or above it is left out, except
    the agent's own in the workspace; so is one that contains the workspace.
    """
    own = Root(settings.workspace, (agent.id,))
    roots = [own]
    if agent.directory:
        roots.insert(0, Root.resolved(Path(agent.directory)))
    home, workspace = (Path(os.path.realpath(each)) for each in (settings.home, settings.workspace))
    allowed = [
        root
        for root in roots
        if not home.is_relative_to(root.path)
        and not workspace.is_relative_to(root.path)
        and (not root.path.is_relative_to(home) or root.path.is_relative_to(own.path))
    ]
    return (*allowed, files_root(settings))


def check_display_name(name: str, limit: int) -> str:
    """Return the name if it fits on one line and into a tag."""
    check_text(name, limit, "the name")
    if len(name) > MAX_NAME_CHARS or any(
        unicodedata.category(each) in _LINE_BREAK_CATEGORIES for each in name
    ):
        raise BadName(
            f"the name {name[:40]!r} is too long, or more than one line",
            hint=f"Use one line of at most {MAX_NAME_CHARS} characters.",
        )
    return name
