"""Everyone who can be addressed, for routing."""

from __future__ import annotations

from sqlalchemy import select

from bullpen.core.models import AGENTS, TEAMS
from bullpen.core.routing.directory import AddressBook
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

AGENT_NAMES: Statement[tuple[str, str]] = Statement(
    lambda: select(AGENTS.c.id, AGENTS.c.name).order_by(AGENTS.c.id)
)
TEAM_NAMES: Statement[tuple[str, str, str]] = Statement(
    lambda: select(TEAMS.c.id, TEAMS.c.name, TEAMS.c.leader).order_by(TEAMS.c.id)
)


def agent_names(tx: Transaction) -> dict[str, str]:
    """What each agent is called."""
    return {agent: name for agent, name in tx.all(AGENT_NAMES, {})}  # noqa: C416 - rows


def load_address_book(tx: Transaction) -> AddressBook:
    """All agents and teams, with their names."""
    return AddressBook(
        agents=agent_names(tx),
        teams={team: (name, leader) for team, name, leader in tx.all(TEAM_NAMES, {})},
    )
