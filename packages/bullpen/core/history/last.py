"""What was said last: to agents and by them, with a person, or in a room."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache

from sqlalchemy import ColumnElement, Select, Table, bindparam, or_, select

from bullpen.core.history.rooms import Post, PostTuple
from bullpen.core.history.search import HistoryTuple, Spoken
from bullpen.core.models import AGENT_MESSAGES, ARCHIVE, CHAT_MESSAGES, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.store.place import id_before
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
class WantedSpoken:
    """What it has in common; None is anything."""

    agent: str | None = None
    person: str | None = None
    """A person's name, or an id on a channel: what was said by that person, and the answers."""


def _wrote(table: Table) -> ColumnElement[bool]:
    """Whether it was this person's message, or what was said about that."""
    columns = table.c
    whose = or_(columns.sender == bindparam("person"), columns.sender_id == bindparam("person"))
    return (
        select(const(1))
        .where(columns.message_id == H.message_id, columns.from_agent.is_(None), whose)
        .exists()
    )


_ALIKE: Mapping[str, Callable[[], ColumnElement[bool]]] = {
    "agent": lambda: H.agent_id == bindparam("agent"),
    # What was said is kept for longer than the message that it answers.
    "person": lambda: or_(H.sender == bindparam("person"), _wrote(MESSAGES), _wrote(ARCHIVE)),
}


@cache
def _said(names: frozenset[str]) -> Statement[HistoryTuple]:
    return Statement(lambda: _said_last().where(*(_ALIKE[name]() for name in sorted(names))))


@cache
def _posts(*, by_one: bool) -> Statement[PostTuple]:
    return Statement(
        lambda: (
            _posted_last().where(C.from_agent == bindparam("author")) if by_one else _posted_last()
        )
    )


def last_spoken(
    tx: Transaction, wanted: WantedSpoken, since: int | None, limit: int
) -> list[Spoken]:
    """The newest of it, from a moment on if one is given, the oldest first."""
    given = dict(_given(tx, wanted))
    values = {**given, **_from(tx, AGENT_MESSAGES, since), "limit": limit}
    return [Spoken(*row) for row in tx.all(_said(frozenset(given)), values)][::-1]


def last_posted(
    tx: Transaction, team: str, author: str | None, since: int | None, limit: int
) -> list[Post]:
    """The newest posts of a room, of everybody or of one, the oldest first."""
    for each in (team, author or ""):
        check_text(each, tx.settings.message_bytes, "what is looked for")
    values = {"team": team, "author": author, **_from(tx, CHAT_MESSAGES, since), "limit": limit}
    return [Post(*row) for row in tx.all(_posts(by_one=author is not None), values)][::-1]


def _given(tx: Transaction, wanted: WantedSpoken) -> Iterator[tuple[str, str]]:
    for each in fields(wanted):
        value: str | None = getattr(wanted, each.name)
        if value is not None:
            yield each.name, check_text(value, tx.settings.message_bytes, "what is looked for")


def _from(tx: Transaction, table: Table, since: int | None) -> dict[str, int]:
    if since is None:
        return {"after": 0, "since": 0}
    return {"after": id_before(tx, table, since), "since": since}
