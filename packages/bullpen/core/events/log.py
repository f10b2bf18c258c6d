"""Reads the event log by filter, page by page."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache

from sqlalchemy import ColumnElement, Select, Text, bindparam, func, select

from bullpen.core.events.tail import EventRecord, event_columns, event_from_row
from bullpen.core.models import EVENTS
from bullpen.core.models.base import const
from bullpen.core.store.paging import first_id_since
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

E = EVENTS.c

PAGE_ROWS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events to read; None matches every event."""

    types: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    conversation_id: str | None = None
    message_id: str | None = None

    def matches(self, record: EventRecord) -> bool:
        """Whether the event is one of them."""
        return (
            (self.types is None or record.type in self.types)
            and (self.agents is None or record.agent in self.agents)
            and self.conversation_id in (None, record.conversation_id)
            and self.message_id in (None, record.message_id)
        )


def last_events(
    tx: Transaction, event_filter: EventFilter, since: int | None, upto: int, limit: int
) -> list[EventRecord]:
    """The newest events, oldest first; `since` is a time before which none is read."""
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
    """The next events after the id `after`; without it the newest events, newest first.

    `upto` is the highest id that may be read: the position of an `EventTail`.
    """
    values: dict[str, object] = {}
    for each in fields(EventFilter):
        value = getattr(event_filter, each.name)
        if isinstance(value, frozenset):
            value = f",{',,'.join(sorted(value))},"
        if value is not None:
            values[each.name] = check_text(value, tx.settings.message_bytes, "what is looked for")
    names = frozenset(values)
    values.update(upto=upto, limit=limit)
    if after is None:
        return tx.all(_select_newest(names), values)
    return tx.all(_select_page(names), {**values, "after": after})


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
    """Whether a text such as `,a,,b,` contains the value: one statement for lists of any length."""
    values = bindparam(name, type_=Text)
    return func.replace(values, const(",") + column + const(","), const("")) != values


_CONDITIONS: dict[str, Callable[[], ColumnElement[bool]]] = {
    "types": lambda: _in_list(E.type, "types"),
    "agents": lambda: _in_list(E.agent, "agents"),
    "conversation_id": lambda: E.conversation_id == bindparam("conversation_id"),
    "message_id": lambda: E.message_id == bindparam("message_id"),
}
