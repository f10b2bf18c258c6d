"""From a claim to a turn: who is to answer, where, and what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import bindparam, select

from bullpen.core.errors import UnknownAgent
from bullpen.core.message import HEARTBEAT, Claim
from bullpen.core.models import AGENT_MESSAGES
from bullpen.core.models.base import const
from bullpen.core.roster.agent import Agent
from bullpen.core.roster.custom_providers import CUSTOM_PREFIX, CustomProvider, find_custom_provider
from bullpen.core.roster.everyone import agent_names
from bullpen.core.roster.find import find_agent
from bullpen.core.roster.sessions import Session, find_session, session_key
from bullpen.core.roster.team import Team
from bullpen.core.roster.teams import teams_of
from bullpen.core.settings import Settings
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.workspace.templates import write_templates
from bullpen.processor.prompt import prompt, system_prompt, told
from bullpen.processor.providers.provider import Turn

H = AGENT_MESSAGES.c

# What an agent writes to somebody of its own accord is no answer: the notes are still to be told.
LAST: Statement[tuple[int, str, str]] = Statement(
    lambda: (
        select(H.id, H.role, H.content)
        .where(
            H.agent_id == bindparam("agent"),
            H.role.in_([const("assistant"), const("note")]),
            H.message_id.not_like(const("proactive\\_%"), escape="\\"),
            H.channel != const(HEARTBEAT),
        )
        .order_by(H.id.desc())
        .limit(const(20))
    )
)


@dataclass(frozen=True, slots=True)
class Brief:
    """What the store knows of the agent that is to answer."""

    agent: Agent
    key: str | None
    """Which of its sessions this run belongs to; a beat has one of its own, which nobody keeps."""
    session: Session | None
    custom: CustomProvider | None
    teams: tuple[Team, ...]
    names: dict[str, str]
    notes: tuple[str, ...]
    """What it is to know about its last answer."""

    def turn(self, claim: Claim, settings: Settings, texts: Sequence[str]) -> Turn:
        """Put the agent's directory in order and write down what it is told."""
        home = settings.workspace / self.agent.id
        write_templates(home)
        return Turn(
            agent=self.agent,
            texts=tuple(texts),
            prompt=prompt(texts, self.notes),
            system=system_prompt(self.agent, home, self.teams, self.names),
            home=home,
            directory=Path(self.agent.directory) if self.agent.directory else home,
            session=self.session,
            custom=self.custom,
        )


def brief(tx: Transaction, claim: Claim) -> Brief:
    """Read it."""
    agent = find_agent(tx, claim.agent)
    if agent is None:
        raise UnknownAgent(f"there is no agent {claim.agent} any more")
    beat = claim.primary.channel == HEARTBEAT
    key = None if beat else session_key(agent, claim.primary)
    custom = None
    if agent.provider.startswith(CUSTOM_PREFIX):
        custom = find_custom_provider(tx, agent.provider.removeprefix(CUSTOM_PREFIX))
    return Brief(
        agent=agent,
        key=key,
        session=None if key is None else find_session(tx, agent, key),
        custom=custom,
        teams=tuple(teams_of(tx, agent.id)),
        names=agent_names(tx),
        notes=() if beat else _notes(tx, agent.id),
    )


def texts(claim: Claim) -> list[str]:
    """Each message as the agent reads it."""
    return [told(message) for message in claim.messages]


def _notes(tx: Transaction, agent: str) -> tuple[str, ...]:
    """What was noted since the agent last said something."""
    notes = []
    for _, role, content in tx.all(LAST, {"agent": agent}):
        if role == "assistant":
            break
        if role == "note":
            notes.append(content)
    return tuple(reversed(notes))
