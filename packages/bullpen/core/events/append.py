"""Append events, each in the transaction of the change that it records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import ColumnElement, Text, bindparam, cast, func, insert, select

from bullpen.core.events.base import Event
from bullpen.core.models import AGENT_MESSAGES, EVENTS, RESPONSES
from bullpen.core.models.base import const
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

# Events hold plain values: the check for circular references would take half of the time.
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


def _insert_with_row_id(field: str, row_id: Callable[[], ColumnElement[int]]) -> Statement[None]:
    """An insert that adds the id of the row written just before to `data`.

    The caller passes `data` without its closing brace. The database looks the id up, so that no
    transaction waits for the answer to an insert.
    """

    def data() -> ColumnElement[str]:
        head = bindparam("data", type_=Text)
        return (
            head
            + const(f',"{field}":')
            + func.coalesce(cast(row_id(), Text), const("null"))
            + const("}")
        )

    return _insert(data)


INSERT_EVENT = _insert(lambda: bindparam("data"))

INSERTS_WITH_ROW_ID: Mapping[str, Statement[None]] = {
    "response": _insert_with_row_id(
        "response",
        lambda: (
            select(func.max(RESPONSES.c.id))
            .where(RESPONSES.c.message_id == bindparam("message_id"))
            .scalar_subquery()
        ),
    ),
    "said": _insert_with_row_id(
        "said",
        lambda: (
            select(func.max(AGENT_MESSAGES.c.id))
            .where(AGENT_MESSAGES.c.agent_id == bindparam("agent"))
            .scalar_subquery()
        ),
    ),
}
"""By the field with the row id: see `base.written_row`."""


def append_event(tx: Transaction, event: Event) -> None:
    """Append an event; readers see it when the transaction is committed."""
    data, field = event.data, event.written_field
    encoded = encode_json(data) if data else None
    if field is None:
        tx.write(INSERT_EVENT, _row(tx, event, encoded))
    else:
        without_brace = None if encoded is None else encoded[:-1]
        tx.write(INSERTS_WITH_ROW_ID[field], _row(tx, event, without_brace))
    tx.wake("events")


def append_events(tx: Transaction, events: Sequence[Event]) -> None:
    """Append events in this order, faster than one by one; none has a field of `written_row`."""
    rows = [_row(tx, each, encode_json(each.data) if each.data else None) for each in events]
    tx.write_each(INSERT_EVENT, rows)
    tx.wake("events")


def _row(tx: Transaction, event: Event, data: str | None) -> dict[str, object]:
    about = event.about
    return {
        "type": event.type,
        "agent": about.agent,
        "conversation_id": about.conversation_id,
        "message_id": about.message_id,
        "data": data,
        "created_at": tx.now,
    }
