"""What was said to agents and by them, as it is listed."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from sqlalchemy import ColumnElement, Select, bindparam, false, or_, select

from bullpen.core.history.search import HistoryEntry, HistoryTuple
from bullpen.core.models import AGENT_MESSAGES
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

H = AGENT_MESSAGES.c


def _rows() -> Select[HistoryTuple]:
    return select(
        *(H.id, H.agent_id, H.role, H.channel, H.sender, H.message_id, H.content, H.created_at)
    )


def newest_history(
    tx: Transaction, agents: Collection[str] | None, limit: int
) -> list[HistoryEntry]:
    """The newest that was said to these agents or by them, the newest first; None is all."""
    values = {**_agent_values(tx, agents), "limit": limit}
    statement = _select_newest(None if agents is None else len(agents))
    return [HistoryEntry(*row) for row in tx.all(statement, values)]


def history_since(
    tx: Transaction, agents: Collection[str] | None, since: int, upto: int, limit: int
) -> list[HistoryEntry]:
    """What was said after this number and up to that one, the oldest first."""
    values = {**_agent_values(tx, agents), "since": since, "upto": upto, "limit": limit}
    statement = _select_page(None if agents is None else len(agents))
    return [HistoryEntry(*row) for row in tx.all(statement, values)]


@cache
def _select_newest(count: int | None) -> Statement[HistoryTuple]:
    rows = _rows().where(*_by_agents(count)).order_by(H.id.desc()).limit(bindparam("limit"))
    return Statement(lambda: rows)


@cache
def _select_page(count: int | None) -> Statement[HistoryTuple]:
    between = (H.id > bindparam("since"), H.id <= bindparam("upto"))
    rows = _rows().where(*_by_agents(count), *between).order_by(H.id).limit(bindparam("limit"))
    return Statement(lambda: rows)


def _by_agents(count: int | None) -> list[ColumnElement[bool]]:
    if count is None:
        return []
    return [or_(false(), *(H.agent_id == bindparam(f"agent{number}") for number in range(count)))]


def _agent_values(tx: Transaction, agents: Collection[str] | None) -> dict[str, object]:
    named = sorted(agents or ())
    for each in named:
        check_text(each, tx.settings.message_bytes, "the agent's id")
    return {f"agent{number}": each for number, each in enumerate(named)}
