"""A lane's row: locked before its messages are touched, settled after.

Every verb keeps one order, lanes by name and then messages, so that no two transactions wait for
each other on PostgreSQL. On SQLite the write lock is held from the start.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, ScalarSelect, and_, bindparam, case, null, select, update

from bullpen.core.errors import StaleToken, UnknownAgent
from bullpen.core.ids import agent_of
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c
L = LANES.c


_TOKEN = re.compile(r"[a-z0-9_-]{1,40}\.[a-z0-9]{1,64}")


class Ordering(StrEnum):
    """Which of an agent's waiting messages comes first."""

    FIFO = "fifo"
    PRIORITY = "priority"
    DEADLINE = "deadline"


class Batching(StrEnum):
    """How many waiting messages one run answers."""

    ALL = "all"
    ONE = "one"


class Overflow(StrEnum):
    """What happens to a message for a lane that is full."""

    REJECT = "reject"
    DROP_OLDEST = "drop_oldest"


def ready() -> ColumnElement[bool]:
    """The messages that stand in the claim's index."""
    return and_(M.status == const(MessageState.PENDING.value), M.ready)


def _runs() -> ColumnElement[bool]:
    return L.state.in_([const(LaneState.ACTIVE.value), const(LaneState.DRAINING.value)])


def _waits() -> ColumnElement[bool]:
    return and_(L.not_before.is_not(None), L.not_before > bindparam("now"))


def _first() -> ScalarSelect[int]:
    return (
        select(M.sort_key)
        .where(M.agent == L.agent, ready())
        .order_by(M.sort_key, M.id)
        .limit(const(1))
        .scalar_subquery()
    )


def _free_head() -> ColumnElement[int | None]:
    return case((and_(_runs(), ~_waits()), _first()), else_=null())


LOCK_LANE: Statement[
    tuple[str, str, str, int | None, str, int, int, int | None, int | None, str | None]
]
LOCK_LANE = Statement(
    lambda: (
        select(
            *(L.state, L.ordering, L.batching, L.max_depth, L.overflow, L.max_attempts),
            *(L.pending, L.head_key, L.not_before, L.claim_token),
        )
        .where(L.agent == bindparam("agent"))
        .with_for_update()
    )
)

LOCK_LANE_IF_FREE: Statement[tuple[str]] = Statement(
    lambda: select(L.state).where(L.agent == bindparam("agent")).with_for_update(skip_locked=True)
)

REFRESH_LANE: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(L.agent == bindparam("agent"))
        .values(
            pending=L.pending + bindparam("change"),
            not_before=case((_waits(), L.not_before), else_=null()),
            head_key=case((L.claim_token.is_(None), _free_head()), else_=null()),
        )
    )
)

# What the claim was (batch, claimed_at, claimed_by) stays until the next: RETURNING shows it.
FreedLane = tuple[str, int, str]

FREE_LANE: Statement[FreedLane] = Statement(
    lambda: (
        update(LANES)
        .where(L.agent == bindparam("agent"), L.claim_token == bindparam("token"))
        .values(
            claim_token=null(),
            lease_expires_at=null(),
            not_before=case((_waits(), L.not_before), else_=null()),
            head_key=_free_head(),
        )
        .returning(L.batch, L.claimed_at, L.claimed_by)
    )
)


@dataclass(frozen=True, slots=True)
class Lane:
    """A locked lane, in the order of LOCK_LANE's columns."""

    state: str
    ordering: str
    batching: str
    max_depth: int | None
    overflow: str
    max_attempts: int
    pending: int
    head_key: int | None
    not_before: int | None
    claim_token: str | None

    @property
    def claimable(self) -> bool:
        """Whether a new message could be claimed at once."""
        return (
            self.claim_token is None and self.not_before is None and self.state == LaneState.ACTIVE
        )


def lock_lane(tx: Transaction, agent: str) -> Lane:
    """The agent's lane, to be changed by nobody else until the transaction ends."""
    row = tx.one(LOCK_LANE, {"agent": agent})
    if row is None:
        raise UnknownAgent(f"there is no agent {agent[:40]!r}")
    return Lane(*row)


def agent_of_token(token: str) -> str:
    """The agent whose lane this token claims, if it looks like a token at all."""
    if not _TOKEN.fullmatch(token):
        raise StaleToken(f"{token[:60]!r} is not a claim")
    return agent_of(token)


def lock_claimed_lane(tx: Transaction, token: str) -> Lane:
    """The lane that this token claims; a token of no lane is no claim."""
    try:
        return lock_lane(tx, agent_of_token(token))
    except UnknownAgent:
        raise StaleToken(f"{token[:60]!r} is not a claim") from None


def refresh_lane(tx: Transaction, agent: str, change: int) -> None:
    """Bring the lane's head up to date after `change` messages more (or less) are pending."""
    tx.write(REFRESH_LANE, {"agent": agent, "change": change, "now": tx.now})
    tx.wake("messages")
