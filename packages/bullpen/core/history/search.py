"""Finds what was said to agents and by them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Select, bindparam, func, select, union

from bullpen.core.message import INTERNAL, ROOM
from bullpen.core.models import AGENT_MESSAGES, ARCHIVE, MESSAGES
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

H = AGENT_MESSAGES.c
HistoryTuple = tuple[int, str, str, str, str, str, str, int]

_HISTORY = (
    select(H.id, H.agent_id, H.role, H.channel, H.sender, H.message_id, H.content, H.created_at)
    .where(func.lower(H.content).like(bindparam("pattern"), escape="\\"))
    .order_by(H.id.desc())
    .limit(bindparam("limit"))
)


def _people(table_number: int) -> Select[tuple[str, str, str | None]]:
    columns = (MESSAGES, ARCHIVE)[table_number].c
    return select(columns.channel, columns.sender, columns.sender_id).where(
        columns.from_agent.is_(None), columns.channel.not_in([ROOM, INTERNAL])
    )


EVERYWHERE: Statement[HistoryTuple] = Statement(_HISTORY)
OF_AGENT: Statement[HistoryTuple] = Statement(_HISTORY.where(H.agent_id == bindparam("agent")))
PEOPLE: Statement[tuple[str, str, str | None]] = Statement(union(_people(0), _people(1)))


@dataclass(frozen=True, slots=True)
class Spoken:
    """One thing that was said."""

    id: int
    agent_id: str
    role: str
    channel: str
    sender: str
    message_id: str
    content: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who wrote, and where."""

    channel: str
    sender: str
    sender_id: str | None


def search_history(
    tx: Transaction, text: str, agent: str | None = None, limit: int = 20
) -> list[Spoken]:
    """What was said in which this text occurs, whatever its case, the newest first."""
    check_text(text, tx.settings.message_bytes, "the text")
    plain = text.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    values: dict[str, object] = {"pattern": f"%{plain}%", "limit": max(1, limit)}
    if agent is None:
        return [Spoken(*row) for row in tx.all(EVERYWHERE, values)]
    return [Spoken(*row) for row in tx.all(OF_AGENT, {**values, "agent": agent})]


def list_people(tx: Transaction) -> list[Person]:
    """Everybody who ever wrote."""
    return sorted(
        (Person(*row) for row in tx.all(PEOPLE, {})), key=lambda each: (each.channel, each.sender)
    )
