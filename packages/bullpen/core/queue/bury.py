"""What happens when a message is dead: it is told, once, to the person and to the record."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import ColumnElement, bindparam, select, update

from bullpen.core.events.append import EventType, append_message_event
from bullpen.core.message import INTERNAL_CHANNELS, Message
from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.outbox.add import add_response
from bullpen.core.outcome import Answer
from bullpen.core.queue.columns import MessageTuple, message_columns
from bullpen.core.queue.lane import ready, refresh_lane
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c


def _pending() -> ColumnElement[bool]:
    return M.status == const(MessageState.PENDING.value)


def _select_oldest(which: Callable[[], tuple[ColumnElement[bool], ...]]) -> Statement[tuple[int]]:
    return Statement(
        lambda: (
            select(M.id)
            .where(M.agent == bindparam("agent"), *which())
            .order_by(M.id)
            .limit(bindparam("count"))
        )
    )


SELECT_OLDEST = (_select_oldest(lambda: (ready(),)), _select_oldest(lambda: (_pending(), ~M.ready)))
"""Among the ready and among the delayed, each by an index of its own."""

DROP_OVERFLOWED: Statement[MessageTuple] = Statement(
    lambda: (
        update(MESSAGES)
        .where(M.id == bindparam("message"), _pending())
        .values(
            status=const(MessageState.DEAD.value),
            error_kind=const("overflow"),
            last_error=const("newer messages took its place in a full lane"),
            updated_at=bindparam("now"),
        )
        .returning(*message_columns())
    )
)


def notify_dead(tx: Transaction, dead: Sequence[Message], kind: str, error: str) -> None:
    """Say of messages that were just moved to `dead` why, to their people and in the events."""
    for message in dead:
        append_message_event(
            tx,
            EventType.MESSAGE_DEAD,
            message,
            kind=kind,
            error=error[:500],
        )
        if message.channel not in INTERNAL_CHANNELS:
            text = (
                f"@{message.agent} could not answer: {error[:500]}\n"
                f"Your message is kept as {message.message_id} and can be tried again."
            )
            add_response(tx, message, Answer(message=text))


def drop_oldest(tx: Transaction, agent: str, count: int) -> None:
    """Make room in a full, locked lane: its oldest messages are dead."""
    found = [
        row for each in SELECT_OLDEST for row in tx.all(each, {"agent": agent, "count": count})
    ]
    oldest = [{"message": id_, "now": tx.now} for (id_,) in sorted(found)[:count]]
    rows = tx.one_each(DROP_OVERFLOWED, oldest)
    dead = [Message(*row) for row in rows if row is not None]
    refresh_lane(tx, agent, -len(dead))
    notify_dead(tx, dead, "overflow", "newer messages took its place in a full lane")
