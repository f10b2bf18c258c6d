"""One message in full: its lane, its place in the queue, its runs and its responses."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Subquery, bindparam, func, select, tuple_

from bullpen.core.background import count_live_workers
from bullpen.core.errors import UnknownAgent
from bullpen.core.inspect.lanes import LaneRecord, get_lane
from bullpen.core.inspect.messages import (
    FINISHED_SCAN,
    MessageRecord,
    get_message,
)
from bullpen.core.inspect.queue import PROCESSOR
from bullpen.core.inspect.responses import ResponseRecord, list_responses_to
from bullpen.core.models import ATTEMPTS, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.attempts import Attempt, list_attempts
from bullpen.core.queue.lanes import ready
from bullpen.core.queue.manage import SELECT_STATUS
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

A = ATTEMPTS.c
M = MESSAGES.c

MAX_RUNS = 1000
"""The most runs that are listed, and the most messages before it that are counted."""

SELECT_SORT_KEY: Statement[tuple[int, bool]] = Statement(
    lambda: select(M.sort_key, M.ready).where(M.id == bindparam("message"))
)


def _earlier() -> Subquery:
    return (
        select(M.id)
        .where(
            M.agent == bindparam("agent"),
            ready(),
            tuple_(M.sort_key, M.id)
            < tuple_(
                bindparam("key", type_=M.sort_key.type), bindparam("message", type_=M.id.type)
            ),
        )
        .limit(const(MAX_RUNS))
        .subquery()
    )


COUNT_EARLIER: Statement[tuple[int]] = Statement(
    lambda: select(func.count()).select_from(_earlier())
)


@dataclass(frozen=True, slots=True)
class MessageDetail:
    """A message, its place in the queue, its runs and its responses."""

    message: MessageRecord
    archived: bool
    lane: LaneRecord | None
    """None if the agent never existed."""
    ready: bool
    """Whether it could be claimed if its lane were free."""
    attended: bool
    """Whether a processor is alive, or the lane is served by external workers."""
    before_it: int
    """The number of messages that are claimed before it, counted up to `MAX_RUNS`."""
    runs: tuple[Attempt, ...]
    ran_with: str | None
    """The primary message of the run that answered this one too."""
    answers: tuple[ResponseRecord, ...]


def get_message_detail(tx: Transaction, message_id: str) -> MessageDetail:
    """The message of this id in full, archived or not."""
    message = get_message(tx, message_id)
    archived = tx.one(SELECT_STATUS, {"message_id": message_id}) is None
    runs = list_attempts(tx, {"message_id": message_id}, 0, MAX_RUNS)
    with_ = None if runs or archived else _find_run_primary(tx, message)
    if with_ is not None:
        runs = [
            run
            for run in list_attempts(tx, {"message_id": with_}, 0, MAX_RUNS)
            if run.finished_at == message.updated_at
        ]
    ready, before = _queue_position(tx, message)
    lane = _find_lane(tx, message.agent)
    asked = [message_id] if with_ is None else [message_id, with_]
    return MessageDetail(
        message=message,
        archived=archived,
        lane=lane,
        ready=ready,
        attended=(lane is not None and lane.outside) or PROCESSOR in count_live_workers(tx),
        before_it=before,
        runs=tuple(runs),
        ran_with=with_,
        answers=tuple(list_responses_to(tx, asked)),
    )


# The messages of one run end at the same moment; the attempt names the first of them.
SELECT_RUN_PRIMARY: Statement[tuple[str]] = Statement(
    lambda: (
        select(M.message_id)
        .join(ATTEMPTS, A.message_id == M.message_id)
        .where(
            *FINISHED_SCAN.where(),
            M.updated_at == bindparam("at"),
            M.agent == bindparam("agent"),
            A.finished_at == bindparam("at"),
        )
        .order_by(M.id)
        .limit(const(1))
    )
)


def _find_run_primary(tx: Transaction, message: MessageRecord) -> str | None:
    """Empty for a failed run, since each of its messages is then retried alone."""
    if message.status != MessageState.COMPLETED:
        return None
    values = {"state": message.status, "at": message.updated_at, "agent": message.agent}
    row = tx.one(SELECT_RUN_PRIMARY, values)
    return None if row is None else row[0]


def _find_lane(tx: Transaction, agent: str) -> LaneRecord | None:
    try:
        return get_lane(tx, agent)
    except UnknownAgent:
        return None


def _queue_position(tx: Transaction, message: MessageRecord) -> tuple[bool, int]:
    """Whether it could be claimed, and the number of messages that are claimed before it."""
    row = (
        tx.one(SELECT_SORT_KEY, {"message": message.id})
        if message.status == MessageState.PENDING
        else None
    )
    if row is None or not row[1]:
        return False, 0
    earlier = tx.one(COUNT_EARLIER, {"agent": message.agent, "key": row[0], "message": message.id})
    return True, 0 if earlier is None else earlier[0]
