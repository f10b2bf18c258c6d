"""The event log: appended with every change of state, listed by filter."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache

from sqlalchemy import ColumnElement, Select, Text, bindparam, cast, func, insert, select

from bullpen.core.events.tail import Event, columns, event_from_row
from bullpen.core.message import Message
from bullpen.core.models import AGENT_MESSAGES, EVENTS, RESPONSES
from bullpen.core.models.base import const
from bullpen.core.store.paging import first_id_since
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text


class EventType(StrEnum):
    """Everything that can happen."""

    MESSAGE_RECEIVED = "message_received"
    MESSAGE_ENQUEUED = "message_enqueued"
    AGENT_ROUTED = "agent_routed"
    CHAIN_STEP_START = "chain_step_start"
    AGENT_PROGRESS = "agent_progress"
    CHAIN_STEP_DONE = "chain_step_done"
    CHAIN_HANDOFF = "chain_handoff"
    TEAM_CHAIN_START = "team_chain_start"
    TEAM_CHAIN_END = "team_chain_end"
    FILE_REFUSED = "file_refused"
    SESSION_LOST = "session_lost"
    SESSION_RESET = "session_reset"
    RESPONSE_READY = "response_ready"
    RESPONSE_DELIVERED = "response_delivered"
    RESPONSE_DEAD = "response_dead"
    RESPONSE_UNKNOWN = "response_unknown"
    RESPONSE_RETRIED = "response_retried"
    MESSAGE_FAILED = "message_failed"
    MESSAGE_RETRIED = "message_retried"
    MESSAGE_RELEASED = "message_released"
    MESSAGE_DEAD = "message_dead"
    MESSAGE_HELD = "message_held"
    MESSAGE_LET_GO = "message_let_go"
    MESSAGE_CANCELLED = "message_cancelled"
    MESSAGE_EXPIRED = "message_expired"
    MESSAGE_DROPPED = "message_dropped"
    LANE_PAUSED = "lane_paused"
    LANE_RESUMED = "lane_resumed"
    LANE_DRAINING = "lane_draining"
    LANE_ARCHIVED = "lane_archived"
    AGENT_ADDED = "agent_added"
    AGENT_CHANGED = "agent_changed"
    AGENT_REMOVED = "agent_removed"
    TEAM_ADDED = "team_added"
    TEAM_CHANGED = "team_changed"
    TEAM_REMOVED = "team_removed"
    ROOM_POSTED = "room_posted"
    KEY_ADDED = "key_added"
    KEY_REVOKED = "key_revoked"
    SCHEDULE_ADDED = "schedule_added"
    SCHEDULE_CHANGED = "schedule_changed"
    SCHEDULE_REMOVED = "schedule_removed"
    SCHEDULE_PAUSED = "schedule_paused"
    SCHEDULE_RESUMED = "schedule_resumed"
    SCHEDULE_FIRED = "schedule_fired"
    SCHEDULE_SKIPPED = "schedule_skipped"
    SCHEDULE_MISSED = "schedule_missed"
    HEARTBEAT_CHANGED = "heartbeat_changed"
    HEARTBEAT_SENT = "heartbeat_sent"
    HEARTBEAT_SILENT = "heartbeat_silent"
    HEARTBEAT_SKIPPED = "heartbeat_skipped"
    HEARTBEAT_PAUSED = "heartbeat_paused"
    DEAD_LETTERS_GREW = "dead_letters_grew"
    WORKER_LOST = "worker_lost"
    SYSTEM_AGENT_FAILED = "system_agent_failed"
    PROCESSOR_START = "processor_start"
    PROCESSOR_STOP = "processor_stop"
    SCHEDULER_START = "scheduler_start"
    SCHEDULER_STOP = "scheduler_stop"


# Events hold plain values: a search for circles in each would be half of the work.
encode_json = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode


def _insert(data: Callable[[], ColumnElement[str]]) -> Statement[None]:
    return Statement(
        lambda: insert(EVENTS).values(
            type=bindparam("type"),
            agent=bindparam("agent"),
            conversation_id=bindparam("conversation_id"),
            message_id=bindparam("message_id"),
            data=data(),
            created_at=bindparam("created_at"),
        )
    )


def _insert_with_row_id(name: str, number: Callable[[], ColumnElement[int]]) -> Statement[None]:
    """An insert that also names the row which was written just before; `data` has no last brace.

    The number is found where it is written: so nobody has to wait for the answer to an insert.
    """

    def data() -> ColumnElement[str]:
        found = func.coalesce(cast(number(), Text), const("null"))
        head = bindparam("data", type_=Text)
        return head + const(f',"{name}":') + found + const("}")

    return _insert(data)


INSERT_EVENT = _insert(lambda: bindparam("data"))

INSERT_RESPONSE_READY = _insert_with_row_id(
    "response",
    lambda: (
        select(func.max(RESPONSES.c.id))
        .where(RESPONSES.c.message_id == bindparam("message_id"))
        .scalar_subquery()
    ),
)

INSERT_CHAIN_STEP_DONE = _insert_with_row_id(
    "said",
    lambda: (
        select(func.max(AGENT_MESSAGES.c.id))
        .where(AGENT_MESSAGES.c.agent_id == bindparam("agent"))
        .scalar_subquery()
    ),
)

INSERTS_WITH_ROW_ID = {
    EventType.RESPONSE_READY: INSERT_RESPONSE_READY,
    EventType.CHAIN_STEP_DONE: INSERT_CHAIN_STEP_DONE,
}


def append_event(
    tx: Transaction,
    event: EventType,
    /,
    *,
    agent: str | None = None,
    conversation_id: str | None = None,
    message_id: str | None = None,
    **data: object,
) -> None:
    """Record that this happened; it is seen when the transaction is committed."""
    naming = INSERTS_WITH_ROW_ID.get(event)
    encoded = encode_json(data) if data else None
    tx.write(
        naming or INSERT_EVENT,
        {
            "type": event.value,
            "agent": agent,
            "conversation_id": conversation_id,
            "message_id": message_id,
            "data": encoded[:-1] if naming and encoded else encoded,
            "created_at": tx.now,
        },
    )
    tx.wake("events")


def append_message_event(
    tx: Transaction, event: EventType, message: Message, /, **data: object
) -> None:
    """Record that this happened to a message."""
    append_event(
        tx,
        event,
        agent=message.agent,
        conversation_id=message.conversation_id,
        message_id=message.message_id,
        **data,
    )


E = EVENTS.c

PAGE_ROWS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """What the events have in common; None is anything."""

    types: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    conversation_id: str | None = None
    message_id: str | None = None

    def matches(self, event: Event) -> bool:
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
def _page(names: frozenset[str]) -> Statement[Event]:
    return Statement(
        lambda: _select_matching(names).where(E.id > bindparam("since")).order_by(E.id),
        event_from_row,
    )


@cache
def _newest(names: frozenset[str]) -> Statement[Event]:
    return Statement(lambda: _select_matching(names).order_by(E.id.desc()), event_from_row)


def last_events(
    tx: Transaction, wanted: EventFilter, since: int | None, upto: int, limit: int
) -> list[Event]:
    """The newest of them, the oldest first: of all that are kept, or from a moment on."""
    if since is None:
        return list_events(tx, wanted, None, upto, limit)[::-1]
    found: deque[Event] = deque(maxlen=limit)
    place = first_id_since(tx, EVENTS, since)
    while page := list_events(tx, wanted, place, upto, PAGE_ROWS):
        found.extend(each for each in page if each.created_at >= since)
        place = page[-1].id
    return list(found)


def list_events(
    tx: Transaction, wanted: EventFilter, since: int | None, upto: int, limit: int
) -> list[Event]:
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
