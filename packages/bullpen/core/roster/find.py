"""Agents as they are looked at: one, or all. What only looks loads nothing else."""

from __future__ import annotations

from dataclasses import fields, replace

from sqlalchemy import Column, bindparam, select

from bullpen.core.errors import UnknownAgent
from bullpen.core.models import AGENTS
from bullpen.core.roster.agent import Agent, Context, Permission, Scheduling
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

A = AGENTS.c


def columns() -> tuple[Column[object], ...]:
    """The columns of an agent, in the order of its fields."""
    return tuple(A[field.name] for field in fields(Agent))


AgentTuple = tuple[str, str, str, str, str, str, str, str, str, int]

FIND: Statement[AgentTuple] = Statement(
    lambda: select(*columns()).where(A.id == bindparam("agent"))
)
LIST: Statement[AgentTuple] = Statement(lambda: select(*columns()).order_by(A.id))


def find_agent(tx: Transaction, agent_id: str) -> Agent | None:
    """The agent of this id, if there is one."""
    row = tx.one(FIND, {"agent": agent_id})
    return None if row is None else _agent(row)


def get_agent(tx: Transaction, agent_id: str) -> Agent:
    """The agent of this id, which must exist."""
    check_text(agent_id, tx.settings.message_bytes, "the agent's id")
    agent = find_agent(tx, agent_id)
    if agent is None:
        raise UnknownAgent(f"there is no agent {agent_id[:40]!r}")
    return agent


def list_agents(tx: Transaction) -> list[Agent]:
    """All agents, by id."""
    return [_agent(row) for row in tx.all(LIST, {})]


def _agent(row: AgentTuple) -> Agent:
    agent = Agent(**dict(zip((field.name for field in fields(Agent)), row, strict=True)))  # type: ignore[arg-type]
    return replace(
        agent,
        permission=Permission(agent.permission),
        context=Context(agent.context),
        scheduling=Scheduling(agent.scheduling),
    )
