"""Responses on their way out: made, leased, looked at; what every outbox test begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Table, select

from bullpen.core.errors import BullpenError
from bullpen.core.message import Answer, Message
from bullpen.core.models import EVENTS, RESPONSES, whole_schema
from bullpen.core.outbox.delivery import Delivery, begin_part, mark_unknown
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.outbox.manage import ack_response, drop_response
from bullpen.core.outbox.write import add_response
from bullpen.core.states import ResponseState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement

Row = dict[str, Any]

END_EVENTS = {
    ResponseState.PENDING: "response_retried",
    ResponseState.ACKED: "response_delivered",
    ResponseState.DEAD: "response_dead",
    ResponseState.UNKNOWN: "response_unknown",
}


def asked(name: str, channel: str = "slack", text: str = "what?") -> Message:
    """A message that somebody asked on this channel."""
    return Message(
        id=0,
        message_id=name,
        channel=channel,
        sender="Ann",
        sender_id="U1",
        message=text,
        agent="coder",
        from_agent=None,
        files=None,
        retry_count=0,
        crash_count=0,
        conversation_id=name,
        parent_id=None,
        hop=0,
        team_id=None,
        reply_to="C1\x1ft1\x1fm1",
        priority=2,
        deadline=None,
        payload=None,
        schema=None,
        written_at=None,
        created_at=0,
        available_at=0,
        runs=1,
        conversation_at=None,
    )


def answer(store: Store, name: str = "slack_1", channel: str = "slack") -> int:
    """Put one response into the outbox; gives its id."""
    with store.write() as tx:
        add_response(tx, asked(name, channel), Answer(message=f"answer to {name}"))
    return max(int(row["id"]) for row in rows(store, RESPONSES))


def answer_many(store: Store, names: Iterable[str]) -> None:
    """Put a response to each of these into the outbox, in one transaction."""
    with store.write() as tx:
        for name in names:
            add_response(tx, asked(name), Answer(message=f"answer to {name}"))


def lease(store: Store, worker: str = "client-1", limit: int = 10) -> list[Delivery]:
    """Lease what is due on Slack."""
    with store.write() as tx:
        return lease_responses(tx, "slack", worker, limit)


def lease_one(store: Store, worker: str = "client-1") -> tuple[Delivery, str]:
    """Lease the one response that is due; gives it and its token."""
    (delivery,) = lease(store, worker, limit=1)
    assert delivery.claim_token is not None
    return delivery, delivery.claim_token


def do(store: Store, verb: Callable[..., object], *given: object, **more: object) -> None:
    """Run one verb in a transaction of its own."""
    with store.write() as tx:
        verb(tx, *given, **more)


def put_into(store: Store, state: ResponseState) -> int:
    """A response in this state, brought there as responses are; gives its id."""
    response = answer(store)
    match state:
        case ResponseState.PENDING:
            pass
        case ResponseState.ACKED:
            do(store, ack_response, response)
        case ResponseState.DEAD:
            do(store, drop_response, response, "not wanted")
        case ResponseState.UNKNOWN:
            _, token = lease_one(store)
            do(store, begin_part, token)
            do(store, mark_unknown, token, "no answer to the send", look_up=False)
    assert row_of(store, response)["status"] == state.value
    return response


def rows(store: Store, table: Table) -> list[Row]:
    """All rows of a table, in the order of its key."""
    statement: Statement[tuple[object, ...]]
    statement = Statement(lambda: select(*table.c).order_by(*table.primary_key.columns))
    with store.read() as tx:
        found = tx.all(statement, {})
    return [dict(zip(table.c.keys(), row, strict=True)) for row in found]


def row_of(store: Store, response: int) -> Row:
    """One response's row."""
    (found,) = (row for row in rows(store, RESPONSES) if row["id"] == response)
    return found


def status(store: Store, response: int) -> str:
    """One response's state."""
    return str(row_of(store, response)["status"])


def ends(store: Store) -> list[str]:
    """The events of responses that ended or were sent again, in order."""
    told = {*END_EVENTS.values(), "response_unconfirmed", "response_settled"}
    return [str(row["type"]) for row in rows(store, EVENTS) if row["type"] in told]


def everything(store: Store) -> dict[str, list[Row]]:
    """All that the database holds."""
    return {name: rows(store, table) for name, table in whole_schema().tables.items()}


@contextmanager
def nothing_changes(store: Store, error: type[BullpenError]) -> Iterator[None]:
    """The block raises this error, and not a byte of the database is different afterwards."""
    before = everything(store)
    with pytest.raises(error):
        yield
    assert everything(store) == before
