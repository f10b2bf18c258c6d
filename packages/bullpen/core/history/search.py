"""Finds what was said to agents and by them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlalchemy import Select, bindparam, func, select, union

from bullpen.core.message import HEARTBEAT, INTERNAL, ROOM, SCHEDULE
from bullpen.core.models import AGENT_MESSAGES, MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

H = AGENT_MESSAGES.c

PAGE_ROWS = 200
MAX_RESULTS = 10_000
"""So many are found at the most."""

_MAX_ID = 1 << 62
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")

HistoryTuple = tuple[int, str, str, str, str, str, str, int]


def _history() -> Select[HistoryTuple]:
    return (
        select(H.id, H.agent_id, H.role, H.channel, H.sender, H.message_id, H.content, H.created_at)
        .where(
            func.lower(H.content).like(bindparam("pattern"), escape="\\"),
            H.id < bindparam("before"),
        )
        .order_by(H.id.desc())
        .limit(bindparam("limit"))
    )


def _select_people(table_number: int) -> Select[tuple[str, str, str | None]]:
    columns = (MESSAGES, MESSAGES_ARCHIVE)[table_number].c
    return select(columns.channel, columns.sender, columns.sender_id).where(
        columns.from_agent.is_(None),
        columns.channel.not_in([const(each) for each in (ROOM, INTERNAL, HEARTBEAT, SCHEDULE)]),
        columns.message_id.not_like(const(f"{SCHEDULE}\\_%"), escape="\\"),
    )


SEARCH_ALL: Statement[HistoryTuple] = Statement(_history)
SEARCH_AGENT: Statement[HistoryTuple] = Statement(
    lambda: _history().where(H.agent_id == bindparam("agent"))
)
SELECT_PEOPLE: Statement[tuple[str, str, str | None]] = Statement(
    lambda: union(_select_people(0), _select_people(1))
)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
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
) -> list[HistoryEntry]:
    """What was said in which this text occurs, whatever its case, the newest first."""
    check_text(text + (agent or ""), tx.settings.message_bytes, "the text")
    limit = min(max(1, limit), MAX_RESULTS)
    plain = text.casefold()
    statement = SEARCH_ALL if agent is None else SEARCH_AGENT
    values: dict[str, object] = {
        "pattern": _like_pattern(text.lower()),
        "agent": agent,
        "before": _MAX_ID,
    }
    page = max(PAGE_ROWS, limit)
    found: list[HistoryEntry] = []
    while len(found) < limit:
        rows = tx.all(statement, {**values, "limit": page})
        found += [HistoryEntry(*row) for row in rows if plain in row[6].casefold()]
        if len(rows) < page:
            break
        values["before"] = rows[-1][0]
    return found[:limit]


def _like_pattern(text: str) -> str:
    """What the database looks for: it need not know the case of letters beyond ASCII."""
    literal = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return "%" + _BEYOND_ASCII.sub("%", literal) + "%"


def list_people(tx: Transaction) -> list[Person]:
    """Everybody who ever wrote."""
    return sorted(
        (Person(*row) for row in tx.all(SELECT_PEOPLE, {})),
        key=lambda each: (each.channel, each.sender, each.sender_id or ""),
    )
