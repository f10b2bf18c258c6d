"""Dead letters: notices, overflow of lanes, and groups of failures with the same cause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, bindparam, insert, select, update

from bullpen.core.events.append import append_event
from bullpen.core.events.message import MessageDead
from bullpen.core.message import INTERNAL_CHANNELS, Message
from bullpen.core.models import DEATH_CAUSES, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.outbox.notices import notify_person
from bullpen.core.queue.attempts import fingerprint
from bullpen.core.queue.disposition import ERROR_PREVIEW_CHARS
from bullpen.core.queue.lanes import pending, ready, refresh_lane
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c

C = DEATH_CAUSES.c

OVERFLOW_ERROR = "dropped to make room for newer messages in the full queue of its agent"


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """The dead letters with one cause, counted."""

    fingerprint: str
    kind: str
    error: str
    """The newest error, as an example."""
    deaths: int
    first_at: int
    last_at: int
    told_at: int | None
    """The time of the last notice to the owner."""


@dataclass(frozen=True, slots=True)
class DeadMessage:
    """A message that became a dead letter."""

    message_id: str
    agent: str
    kind: str
    error: str
    at: int


def _select_oldest(
    conditions: Callable[[], tuple[ColumnElement[bool], ...]],
) -> Statement[tuple[int]]:
    return Statement(
        lambda: (
            select(M.id)
            .where(M.agent == bindparam("agent"), *conditions())
            .order_by(M.id)
            .limit(bindparam("count"))
        )
    )


SELECT_OLDEST = (_select_oldest(lambda: (ready(),)), _select_oldest(lambda: (pending(), ~M.ready)))
"""Among the ready and among the delayed messages: each statement has its own index."""

DROP_OVERFLOWED: Statement[Message] = Statement(
    lambda: (
        update(MESSAGES)
        .where(M.id == bindparam("message"), pending())
        .values(
            status=const(MessageState.DEAD.value),
            error_kind=const("overflow"),
            last_error=const(OVERFLOW_ERROR),
            updated_at=bindparam("now"),
        )
        .returning(*columns(Message, MESSAGES))
    ),
    Message,
)

ADD_TO_GROUP: Statement[FailureGroup] = Statement(
    lambda: (
        update(DEATH_CAUSES)
        .where(C.fingerprint == bindparam("cause"))
        .values(
            kind=bindparam("kind"),
            error=bindparam("error"),
            deaths=C.deaths + bindparam("deaths"),
            last_at=bindparam("last_at"),
        )
        .returning(*columns(FailureGroup, DEATH_CAUSES))
    ),
    FailureGroup,
)

INSERT_GROUP: Statement[None] = Statement(
    lambda: insert(DEATH_CAUSES).values({column.name: bindparam(column.name) for column in C})
)

MARK_NOTIFIED: Statement[None] = Statement(
    lambda: (
        update(DEATH_CAUSES)
        .where(C.fingerprint == bindparam("cause"))
        .values(told_at=bindparam("now"))
    )
)

SELECT_GROUP: Statement[FailureGroup] = Statement(
    lambda: select(*columns(FailureGroup, DEATH_CAUSES)).where(C.fingerprint == bindparam("cause")),
    FailureGroup,
)

# The table has one row for each cause, so an index would be larger than the table.
SELECT_NEWEST_GROUPS: Statement[FailureGroup] = Statement(
    lambda: (
        select(*columns(FailureGroup, DEATH_CAUSES))
        .order_by(C.last_at.desc(), C.fingerprint)
        .limit(bindparam("limit"))
    ),
    FailureGroup,
)


def notify_dead(tx: Transaction, dead: Sequence[Message], kind: str, error: str) -> None:
    """Record that these messages became dead letters, and notify the people who sent them."""
    cause = fingerprint(error) if dead else None
    for message in dead:
        event = MessageDead(
            message,
            kind=kind,
            error=error[:ERROR_PREVIEW_CHARS],
            channel=message.channel,
            team_id=message.team_id,
            sender_id=message.sender_id,
            fingerprint=cause,
        )
        append_event(tx, event)
        if message.channel not in INTERNAL_CHANNELS:
            notify_person(tx, message, death_notice(message.agent, message.message_id, error))


def death_notice(agent: str, message_id: str, error: str) -> str:
    """The notice for the sender of a message that became a dead letter."""
    return (
        f"@{agent} could not answer: {error[:ERROR_PREVIEW_CHARS]}\n"
        f"Your message {message_id} was kept and can be retried."
    )


def drop_oldest(tx: Transaction, agent: str, count: int) -> None:
    """Make room in a full, locked lane: its oldest pending messages become dead letters."""
    ids = [row for each in SELECT_OLDEST for row in tx.all(each, {"agent": agent, "count": count})]
    oldest = [{"message": id_, "now": tx.now} for (id_,) in sorted(ids)[:count]]
    dead = [each for each in tx.one_each(DROP_OVERFLOWED, oldest) if each is not None]
    refresh_lane(tx, agent, -len(dead))
    notify_dead(tx, dead, "overflow", OVERFLOW_ERROR)


def add_to_failure_group(
    tx: Transaction, cause: str, deaths: Sequence[DeadMessage]
) -> FailureGroup:
    """Add these messages, oldest first, to the count of one cause; returns the new group."""
    first, last = deaths[0], deaths[-1]
    values = {"kind": last.kind, "error": last.error, "deaths": len(deaths), "last_at": last.at}
    group = tx.one(ADD_TO_GROUP, {**values, "cause": cause})
    if group is not None:
        return group
    tx.write(INSERT_GROUP, {**values, "fingerprint": cause, "first_at": first.at, "told_at": None})
    return FailureGroup(cause, last.kind, last.error, len(deaths), first.at, last.at, None)


def mark_owner_notified(tx: Transaction, cause: str) -> None:
    """Record that the owner was notified of this cause."""
    tx.write(MARK_NOTIFIED, {"cause": cause, "now": tx.now})


def find_failure_group(tx: Transaction, cause: str) -> FailureGroup | None:
    """The group of this cause, if there is one."""
    return tx.one(SELECT_GROUP, {"cause": cause})


def list_failure_groups(tx: Transaction, limit: int) -> list[FailureGroup]:
    """The causes of dead letters, newest first."""
    return tx.all(SELECT_NEWEST_GROUPS, {"limit": limit})
