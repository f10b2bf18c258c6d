"""Reads the event log by filter, page by page."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache

from sqlalchemy import ColumnElement, Select, Text, bindparam, func, select

from bullpen.core.events.tail import EventRecord, columns, event_from_row
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
    """What the events have in common; None is anything."""

    types: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    conversation_id: str | None = None
    message_id: str | None = None

    def matches(self, event: EventRecord) -> bool:
        """Whether this one is among them."""
        return (
            (self.types is None or event.type in self.types)
            and (self.agents is None or event.agent in self.agents)
            and self.conversation_id in (None, event.conversation_id)
            and self.message_id in (None, event.message_id)
        )


def _in_list(column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    """Whether the value stands between commas in a list: one statement for lists of any length."""
    given = bindparam(name, type_=Text)
    return func.replace(given, const(",") + column + const(","), const("")) != given


_CONDITIONS: dict[str, Callable[[], ColumnElement[bool]]] = {
    "types": lambda: _in_list(E.type, "types"),
    "agents": lambda: _in_list(E.agent, "agents"),
    "conversation_id": lambda: E.conversation_id == bindparam("conversation_id"),
    "message_id": lambda: E.message_id == bindparam("message_id"),
}


def _select_matching(names: frozenset[str]) -> Select[*tuple[object, ...]]:
    return (
        select(*columns())
        .where(E.id <= bindparam("upto"), *(_CONDITIONS[name]() for name in sorted(names)))
        .limit(bindparam("limit"))
    )


@cache
def _page(names: frozenset[str]) -> Statement[EventRecord]:
    return Statement(
        lambda: _select_matching(names).where(E.id > bindparam("since")).order_by(E.id),
        event_from_row,
    )


@cache
def _newest(names: frozenset[str]) -> Statement[EventRecord]:
    return Statement(lambda: _select_matching(names).order_by(E.id.desc()), event_from_row)


def last_events(
    tx: Transaction, wanted: EventFilter, since: int | None, upto: int, limit: int
) -> list[EventRecord]:
    """The newest of them, the oldest first: of all that are kept, or from a moment on."""
    if since is None:
        return list_events(tx, wanted, None, upto, limit)[::-1]
    found: deque[EventRecord] = deque(maxlen=limit)
    place = first_id_since(tx, EVENTS, since)
    while page := list_events(tx, wanted, place, upto, PAGE_ROWS):
        found.extend(each for each in page if each.created_at >= since)
        place = page[-1].id
    return list(found)


def list_events(
    tx: Transaction, wanted: EventFilter, since: int | None, upto: int, limit: int
) -> list[EventRecord]:
    """The next events after this number; without one the newest, the newest first.

    `upto` is how far events may be shown: a tail's position, or what `EventTail.from_now` has.
    """
    values: dict[str, object] = {}
    for each in fields(EventFilter):
        value = getattr(wanted, each.name)
        if isinstance(value, frozenset):
            value = f",{',,'.join(sorted(value))},"
        if value is not None:
            values[each.name] = check_text(value, tx.settings.message_bytes, "what is looked for")
    names = frozenset(values)
    values.update(upto=upto, limit=limit)
    if since is None:
        return tx.all(_newest(names), values)
    return tx.all(_page(names), {**values, "since": since})
