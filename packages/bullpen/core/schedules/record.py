"""The record of what became of each due time."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import bindparam, insert, select

from bullpen.core.models import MESSAGES, SCHEDULE_RUNS
from bullpen.core.models.base import const
from bullpen.core.schedules.schedule import Schedule
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

R = SCHEDULE_RUNS.c
M = MESSAGES.c


class ScheduleOutcome(StrEnum):
    """What became of a due time."""

    FIRED = "fired"
    SKIPPED = "skipped"
    MISSED = "missed"


_INSERTED_COLUMNS = (
    "schedule_id",
    "due_at",
    "until",
    "fired_at",
    "outcome",
    "times",
    "message_id",
    "reason",
)

INSERT_RUN: Statement[None] = Statement(
    lambda: insert(SCHEDULE_RUNS).values({name: bindparam(name) for name in _INSERTED_COLUMNS})
)
SELECT_RECORDED: Statement[tuple[int]] = Statement(
    lambda: select(R.id).where(R.schedule_id == bindparam("schedule"), R.due_at == bindparam("due"))
)
SELECT_LAST_MESSAGE: Statement[tuple[str]] = Statement(
    lambda: (
        select(R.message_id)
        .where(R.schedule_id == bindparam("schedule"), R.message_id.is_not(None))
        .order_by(R.id.desc())
        .limit(const(1))
    )
)
_UNFINISHED_STATES = (MessageState.PENDING, MessageState.PROCESSING, MessageState.HELD)
# The run's message, and all that it set off.
SELECT_UNFINISHED: Statement[tuple[str]] = Statement(
    lambda: (
        select(M.message_id)
        .where(
            (M.message_id == bindparam("conversation"))
            | (
                (M.conversation_id == bindparam("conversation"))
                & (M.conversation_id != M.message_id)
            ),
            M.status.in_([const(state.value) for state in _UNFINISHED_STATES]),
        )
        .limit(const(1))
    )
)


def record_run(
    tx: Transaction,
    schedule: Schedule,
    due: int | None,
    outcome: ScheduleOutcome,
    *,
    until: int | None = None,
    times: int = 1,
    message_id: str | None = None,
    reason: str | None = None,
) -> None:
    """Append it; a due time that is there already ends the transaction."""
    values: dict[str, object] = {"schedule_id": schedule.id, "due_at": due, "until": until}
    values.update(fired_at=tx.now, outcome=outcome.value, times=times)
    tx.write(INSERT_RUN, {**values, "message_id": message_id, "reason": reason})


def is_recorded(tx: Transaction, schedule: Schedule, due: int) -> bool:
    """Whether something became of this due time already."""
    return tx.one(SELECT_RECORDED, {"schedule": schedule.id, "due": due}) is not None


def find_unfinished_message(tx: Transaction, schedule: Schedule) -> str | None:
    """A message of the last run, or one that it set off, that is not through yet."""
    last = tx.one(SELECT_LAST_MESSAGE, {"schedule": schedule.id})
    row = None if last is None else tx.one(SELECT_UNFINISHED, {"conversation": last[0]})
    return None if row is None else row[0]
