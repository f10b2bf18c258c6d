"""What was said last: to agents and by them, with a person, or in a room."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache

from sqlalchemy import ColumnElement, Select, Table, bindparam, or_, select

from bullpen.core.history.rooms import Post, PostTuple
from bullpen.core.history.search import HistoryEntry, HistoryTuple
from bullpen.core.models import AGENT_MESSAGES, CHAT_MESSAGES, MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.store.place import first_id_since
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

H = AGENT_MESSAGES.c
C = CHAT_MESSAGES.c


def _said_last() -> Select[HistoryTuple]:
    return (
        select(H.id, H.agent_id, H.role, H.channel, H.sender, H.message_id, H.content, H.created_at)
        .where(H.id > bindparam("after"), H.created_at >= bindparam("since"))
        .order_by(H.id.desc())
        .limit(bindparam("limit"))
    )


def _posted_last() -> Select[PostTuple]:
    return (
        select(C.id, C.team_id, C.from_agent, C.message, C.created_at)
        .where(
            C.team_id == bindparam("team"),
            C.id > bindparam("after"),
            C.created_at >= bindparam("since"),
        )
        .order_by(C.id.desc())
        .limit(bindparam("limit"))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """What it has in common; None is anything."""

    agent: str | None = None
    person: str | None = None
    """A person's name, or an id on a channel: what was said by that person, and the answers."""


def _is_by_person(table: Table) -> ColumnElement[bool]:
    """Whether it was this person's message, or what was said about that."""
    columns = table.c
    whose = or_(columns.sender == bindparam("person"), columns.sender_id == bindparam("person"))
    return (
        select(const(1))
        .where(columns.message_id == H.message_id, columns.from_agent.is_(None), whose)
        .exists()
    )


_CONDITIONS: Mapping[str, Callable[[], ColumnElement[bool]]] = {
    "agent": lambda: H.agent_id == bindparam("agent"),
    # What was said is kept for longer than the message that it answers.
    "person": lambda: or_(
        H.sender == bindparam("person"), _is_by_person(MESSAGES), _is_by_person(MESSAGES_ARCHIVE)
    ),
}


@cache
def _select_filtered_history(names: frozenset[str]) -> Statement[HistoryTuple]:
    return Statement(lambda: _said_last().where(*(_CONDITIONS[name]() for name in sorted(names))))


@cache
def _select_filtered_posts(*, by_one: bool) -> Statement[PostTuple]:
    return Statement(
        lambda: (
            _posted_last().where(C.from_agent == bindparam("author")) if by_one else _posted_last()
        )
    )


def list_history(
    tx: Transaction, wanted: HistoryFilter, since: int | None, limit: int
) -> list[HistoryEntry]:
    """The newest of it, from a moment on if one is given, the oldest first."""
    given = dict(_filter_values(tx, wanted))
    values = {**given, **_since_values(tx, AGENT_MESSAGES, since), "limit": limit}
    return [
        HistoryEntry(*row) for row in tx.all(_select_filtered_history(frozenset(given)), values)
    ][::-1]


def list_posts(
    tx: Transaction, team: str, author: str | None, since: int | None, limit: int
) -> list[Post]:
    """The newest posts of a room, of everybody or of one, the oldest first."""
    for each in (team, author or ""):
        check_text(each, tx.settings.message_bytes, "what is looked for")
    values = {
        "team": team,
        "author": author,
        **_since_values(tx, CHAT_MESSAGES, since),
        "limit": limit,
    }
    return [
        Post(*row) for row in tx.all(_select_filtered_posts(by_one=author is not None), values)
    ][::-1]


def _filter_values(tx: Transaction, wanted: HistoryFilter) -> Iterator[tuple[str, str]]:
    for each in fields(wanted):
        value: str | None = getattr(wanted, each.name)
        if value is not None:
            yield each.name, check_text(value, tx.settings.message_bytes, "what is looked for")


def _since_values(tx: Transaction, table: Table, since: int | None) -> dict[str, int]:
    if since is None:
        return {"after": 0, "since": 0}
    return {"after": first_id_since(tx, table, since), "since": since}
