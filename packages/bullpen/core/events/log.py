"""Read the event log, filtered and page by page."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache

from sqlalchemy import Column, ColumnElement, Select, Text, bindparam, func, select

from bullpen.core.events.base import Event
from bullpen.core.events.vocabulary import read_event
from bullpen.core.models import EVENTS
from bullpen.core.models.base import const
from bullpen.core.store.base import Store
from bullpen.core.store.paging import first_id_since
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

E = EVENTS.c

PAGE_ROWS = 500

MAX_EVENT_ID: Statement[tuple[int | None]] = Statement(lambda: select(func.max(E.id)))

MIN_EVENT_ID: Statement[tuple[int | None]] = Statement(lambda: select(func.min(E.id)))


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A row of the event log."""

    id: int
    type: str
    agent: str | None
    conversation_id: str | None
    message_id: str | None
    data: dict[str, object] = field(hash=False)
    created_at: int

    @property
    def event(self) -> Event:
        """The event in this row."""
        return read_event(self.type, self, self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Selects events; None matches all."""

    types: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    conversation_id: str | None = None
    message_id: str | None = None

    def matches(self, record: EventRecord) -> bool:
        """Whether the event passes the filter."""
        return (
            (self.types is None or record.type in self.types)
            and (self.agents is None or record.agent in self.agents)
            and self.conversation_id in (None, record.conversation_id)
            and self.message_id in (None, record.message_id)
        )


def last_events(
    tx: Transaction, event_filter: EventFilter, since: int | None, upto: int, limit: int
) -> list[EventRecord]:
    """The newest events, oldest first; with `since`, only those from that time on."""
    if since is None:
        return list_events(tx, event_filter, None, upto, limit)[::-1]
    records: deque[EventRecord] = deque(maxlen=limit)
    position = first_id_since(tx, EVENTS, since)
    while page := list_events(tx, event_filter, position, upto, PAGE_ROWS):
        records.extend(each for each in page if each.created_at >= since)
        position = page[-1].id
    return list(records)


def list_events(
    tx: Transaction, event_filter: EventFilter, after: int | None, upto: int, limit: int
) -> list[EventRecord]:
    """The next events after the id `after`; without it the newest, newest first.

    `upto` is the highest id to read: the position of an `EventTail`.
    """
    values: dict[str, object] = {}
    for each in fields(EventFilter):
        value = getattr(event_filter, each.name)
        if isinstance(value, frozenset):
            value = f",{',,'.join(sorted(value))},"
        if value is not None:
            values[each.name] = check_text(value, tx.settings.message_bytes, "the filter")
    names = frozenset(values)
    values.update(upto=upto, limit=limit)
    if after is None:
        return tx.page(_select_newest(names), values)
    return tx.page(_select_page(names), {**values, "after": after})


def last_event_id(tx: Transaction) -> int:
    """The highest id of the log; events that this transaction appends come after it."""
    row = tx.one(MAX_EVENT_ID, {})
    return 0 if row is None or row[0] is None else row[0]


def id_before_oldest(store: Store) -> int:
    """The lowest position from which a reader can continue; older events are deleted."""
    with store.read() as tx:
        row = tx.one(MIN_EVENT_ID, {})
    return 0 if row is None or row[0] is None else row[0] - 1


def event_columns() -> tuple[Column[object], ...]:
    """The columns of an event."""
    return (E.id, E.type, E.agent, E.conversation_id, E.message_id, E.data, E.created_at)


def event_from_row(
    id_: int,
    type_: str,
    agent: str | None,
    conversation_id: str | None,
    message_id: str | None,
    data: str | None,
    created_at: int,
) -> EventRecord:
    """The record of these columns, with parsed data."""
    parsed = json.loads(data) if data else {}
    return EventRecord(id_, type_, agent, conversation_id, message_id, parsed, created_at)


@cache
def _select_page(names: frozenset[str]) -> Statement[EventRecord]:
    return Statement(
        lambda: _select_matching(names).where(E.id > bindparam("after")).order_by(E.id),
        event_from_row,
    )


@cache
def _select_newest(names: frozenset[str]) -> Statement[EventRecord]:
    return Statement(lambda: _select_matching(names).order_by(E.id.desc()), event_from_row)


def _select_matching(names: frozenset[str]) -> Select[*tuple[object, ...]]:
    return (
        select(*event_columns())
        .where(E.id <= bindparam("upto"), *(_CONDITIONS[name]() for name in sorted(names)))
        .limit(bindparam("limit"))
    )


def _in_list(column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    """Whether a text such as `,a,,b,` contains the value; one statement for all list lengths."""
    values = bindparam(name, type_=Text)
    return func.replace(values, const(",") + column + const(","), const("")) != values


_CONDITIONS: dict[str, Callable[[], ColumnElement[bool]]] = {
    "types": lambda: _in_list(E.type, "types"),
    "agents": lambda: _in_list(E.agent, "agents"),
    "conversation_id": lambda: E.conversation_id == bindparam("conversation_id"),
    "message_id": lambda: E.message_id == bindparam("message_id"),
}
