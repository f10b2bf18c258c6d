"""life: one message with all that is known of it: its lane, its runs, its answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from sqlalchemy import Subquery, bindparam, func, select, tuple_

from bullpen.core.errors import UnknownAgent
from bullpen.core.models import ATTEMPTS, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.outbox.browse import SeenResponse, responses_to
from bullpen.core.queue.attempts import Attempt, browse_attempts
from bullpen.core.queue.browse import Seen, look_up
from bullpen.core.queue.find import STATUS
from bullpen.core.queue.lane import ready
from bullpen.core.queue.lane_list import SeenLane, look_at_lane
from bullpen.core.queue.overview import PROCESSOR
from bullpen.core.queue.roads import FINISHED, FOR_PEOPLE, Road
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.workers import alive_workers

A = ATTEMPTS.c
M = MESSAGES.c

MOST = 1000
"""So many of its runs are shown, and of the messages before it counted."""

KEY: Statement[tuple[int, bool]] = Statement(
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
        .limit(const(MOST))
        .subquery()
    )


EARLIER: Statement[tuple[int]] = Statement(lambda: select(func.count()).select_from(_earlier()))


@dataclass(frozen=True, slots=True)
class Life:
    """A message, and what came of it."""

    message: Seen
    archived: bool
    lane: SeenLane | None
    """None if the agent never had one here."""
    ready: bool
    """Whether it waits for nothing but its turn."""
    attended: bool
    """Whether somebody is there to take it: a processor, or for its lane workers outside."""
    before_it: int
    """How many messages come first, `MOST` at the most."""
    runs: tuple[Attempt, ...]
    ran_with: str | None
    """The message whose run was to answer this one as well."""
    answers: tuple[SeenResponse, ...]


def life(tx: Transaction, message_id: str) -> Life:
    """The life of the message of this id, archived or not."""
    message = look_up(tx, message_id)
    archived = tx.one(STATUS, {"message_id": message_id}) is None
    runs = browse_attempts(tx, {"message_id": message_id}, 0, MOST)
    with_ = None if runs or archived else _ran_with(tx, message)
    if with_ is not None:
        runs = [
            run
            for run in browse_attempts(tx, {"message_id": with_}, 0, MOST)
            if run.finished_at == message.updated_at
        ]
    ready, before = _place(tx, message)
    lane = _lane(tx, message.agent)
    asked = [message_id] if with_ is None else [message_id, with_]
    return Life(
        message=message,
        archived=archived,
        lane=lane,
        ready=ready,
        attended=(lane is not None and lane.outside) or PROCESSOR in alive_workers(tx),
        before_it=before,
        runs=tuple(runs),
        ran_with=with_,
        answers=tuple(responses_to(tx, asked)),
    )


@cache
def _beside(road: Road) -> Statement[tuple[str]]:
    """Messages of one run end in the same moment; the run is written down for the first of them."""
    return Statement(
        lambda: (
            select(M.message_id)
            .join(ATTEMPTS, A.message_id == M.message_id)
            .where(
                *road.where(),
                M.updated_at == bindparam("at"),
                M.agent == bindparam("agent"),
                A.finished_at == bindparam("at"),
            )
            .order_by(M.id)
            .limit(const(1))
        )
    )


def _ran_with(tx: Transaction, message: Seen) -> str | None:
    state = MessageState(message.status)
    if state is MessageState.COMPLETED:
        statement = _beside(FINISHED)
    elif state in (MessageState.DEAD, MessageState.HELD):
        statement = _beside(FOR_PEOPLE)
    else:
        return None
    values = {"state": state.value, "at": message.updated_at, "agent": message.agent}
    row = tx.one(statement, values)
    return None if row is None else row[0]


def _lane(tx: Transaction, agent: str) -> SeenLane | None:
    try:
        return look_at_lane(tx, agent)
    except UnknownAgent:
        return None


def _place(tx: Transaction, message: Seen) -> tuple[bool, int]:
    """Whether it waits for its turn alone, and how many come first."""
    row = tx.one(KEY, {"message": message.id}) if message.status == MessageState.PENDING else None
    if row is None or not row[1]:
        return False, 0
    earlier = tx.one(EARLIER, {"agent": message.agent, "key": row[0], "message": message.id})
    return True, 0 if earlier is None else earlier[0]
