"""The history of heartbeats: one row a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import bindparam, func, insert, select, update

from bullpen.core.models import BEATS
from bullpen.core.store.paging import MAX_ROW_ID, TablePager
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

B = BEATS.c


class HeartbeatOutcome(StrEnum):
    """The outcome of a heartbeat."""

    SENT = "sent"
    """Enqueued; not answered yet, or never."""
    SILENT = "silent"
    SAID = "said"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class HeartbeatRun:
    """One heartbeat and its outcome."""

    id: int
    agent: str
    due_at: int
    fired_at: int
    outcome: str
    message_id: str | None
    reason: str | None


RUN_LISTING = TablePager(BEATS, HeartbeatRun)

INSERT_RUN: Statement[None] = Statement(
    lambda: insert(BEATS).values(
        {each.name: bindparam(each.name) for each in B if each.name != "id"}
    )
)

SET_RUN_OUTCOME: Statement[None] = Statement(
    lambda: (
        update(BEATS)
        .where(B.message_id == bindparam("message"))
        .values(outcome=bindparam("came"), reason=bindparam("why"))
    )
)

# When the heartbeat before the last `beats` ones was sent.
SELECT_NTH_LAST_SENT: Statement[tuple[int]] = Statement(
    lambda: (
        select(B.fired_at)
        .where(B.agent == bindparam("name"), B.message_id.is_not(None))
        .order_by(B.id.desc())
        .limit(1)
        .offset(bindparam("beats"))
    )
)

COUNT_SENT_SINCE: Statement[tuple[int]] = Statement(
    lambda: select(func.count()).where(
        B.agent == bindparam("name"), B.message_id.is_not(None), B.fired_at >= bindparam("since")
    )
)


def record_heartbeat_run(
    tx: Transaction,
    agent: str,
    due: int,
    outcome: HeartbeatOutcome,
    *,
    message_id: str | None = None,
    reason: str | None = None,
) -> None:
    """Record a heartbeat."""
    values: dict[str, object] = {"agent": agent, "due_at": due, "fired_at": tx.now}
    values.update(outcome=outcome.value, message_id=message_id, reason=reason)
    tx.write(INSERT_RUN, values)


def set_run_outcome(
    tx: Transaction, message_id: str, outcome: HeartbeatOutcome, reason: str | None = None
) -> None:
    """Record the outcome of a heartbeat that was sent."""
    tx.write(SET_RUN_OUTCOME, {"message": message_id, "came": outcome.value, "why": reason})


def is_budget_spent(tx: Transaction, agent: str, budget: int, since: int) -> bool:
    """Whether the budget of heartbeats since that moment is spent."""
    row = tx.one(SELECT_NTH_LAST_SENT, {"name": agent, "beats": budget - 1})
    return row is not None and row[0] >= since


def count_sent_since(tx: Transaction, agent: str, since: int) -> int:
    """How many heartbeats were sent since that moment."""
    row = tx.one(COUNT_SENT_SINCE, {"name": agent, "since": since})
    return 0 if row is None else row[0]


def list_heartbeat_runs(
    tx: Transaction, agent: str, since: int | None, limit: int, upto: int = MAX_ROW_ID
) -> list[HeartbeatRun]:
    """The heartbeats after `since` and up to `upto`; without `since` newest first."""
    return RUN_LISTING.page(tx, {"agent": agent}, since, limit, upto)
