"""Lanes: the queues of agents. A lane's row is locked before its messages change.

Every transaction locks lanes by name first and messages after them, so that no deadlock can occur
on PostgreSQL. On SQLite the write lock is held from the start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    and_,
    bindparam,
    case,
    false,
    func,
    insert,
    null,
    select,
    update,
)

from bullpen.core.clock import DAY
from bullpen.core.errors import BadNumber, IllegalMove, LaneBusy, StaleToken, UnknownAgent
from bullpen.core.events.append import append_event
from bullpen.core.events.company import LaneArchived, LaneDraining, LanePaused, LaneResumed
from bullpen.core.ids import agent_of, check_name
from bullpen.core.message import Priority
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.settings import MAX_COUNT
from bullpen.core.states import CLAIMABLE_LANE_STATES, LANE_STATES, LaneState, MessageState
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

M = MESSAGES.c

L = LANES.c

_TOKEN = re.compile(r"[a-z0-9_-]{1,40}\.[a-z0-9]{1,64}")

_EVENT_OF_STATE = {
    LaneState.PAUSED: LanePaused,
    LaneState.ACTIVE: LaneResumed,
    LaneState.DRAINING: LaneDraining,
    LaneState.ARCHIVED: LaneArchived,
}

_POLICY_COLUMNS = ("ordering", "batching", "max_depth", "overflow", "max_attempts")


class Ordering(StrEnum):
    """The order in which an agent's pending messages are claimed."""

    FIFO = "fifo"
    PRIORITY = "priority"
    DEADLINE = "deadline"


class Batching(StrEnum):
    """The number of pending messages that one run answers."""

    ALL = "all"
    ONE = "one"


class Overflow(StrEnum):
    """The behaviour of a full lane."""

    REJECT = "reject"
    DROP_OLDEST = "drop_oldest"


MAX_DEPTH = MAX_COUNT
MAX_ATTEMPTS = 1000
"""The bounds in the API and the command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePolicy:
    """The policy of a lane."""

    ordering: Ordering = Ordering.FIFO
    batching: Batching = Batching.ALL
    max_depth: int | None = None
    overflow: Overflow = Overflow.REJECT
    max_attempts: int | None = None
    """None means the setting."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A locked lane."""

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
    newest_at: int | None

    def arrival(self, now: int) -> int:
        """The arrival time of a new message, which is never before that of an earlier one."""
        return now if self.newest_at is None else max(now, self.newest_at)

    @property
    def claimable(self) -> bool:
        """Whether a new message could be claimed at once."""
        return (
            self.claim_token is None and self.not_before is None and self.state == LaneState.ACTIVE
        )


FreedLane = tuple[str, int, str]
"""The last claim of a lane: batch, `claimed_at`, `claimed_by`; kept until the next claim."""


def pending() -> ColumnElement[bool]:
    """Whether a message is pending, delayed ones included."""
    return M.status == const(MessageState.PENDING.value)


def ready() -> ColumnElement[bool]:
    """Whether a message is pending and not delayed; the claim's index has only these."""
    return and_(pending(), M.ready)


def _is_claimable() -> ColumnElement[bool]:
    return L.state.in_([const(each.value) for each in CLAIMABLE_LANE_STATES])


def _is_delayed() -> ColumnElement[bool]:
    return and_(L.not_before.is_not(None), L.not_before > bindparam("now"))


def _first_sort_key() -> ScalarSelect[int]:
    return (
        select(M.sort_key)
        .where(M.agent == L.agent, ready())
        .order_by(M.sort_key, M.id)
        .limit(const(1))
        .scalar_subquery()
    )


def _head_key() -> ColumnElement[int | None]:
    return case((and_(_is_claimable(), ~_is_delayed()), _first_sort_key()), else_=null())


SELECT_OPEN_LANES: Statement[tuple[str]] = Statement(
    lambda: select(L.agent).where(L.state != const(LaneState.ARCHIVED.value))
)

LOCK_LANE: Statement[Lane] = Statement(
    lambda: select(*columns(Lane, LANES)).where(L.agent == bindparam("agent")).with_for_update(),
    Lane,
    waits_for="agent",
)

LOCK_LANE_IF_FREE: Statement[tuple[str]] = Statement(
    lambda: select(L.state).where(L.agent == bindparam("agent")).with_for_update(skip_locked=True)
)

SELECT_PAUSE: Statement[tuple[str | None]] = Statement(
    lambda: select(L.reason).where(
        L.agent == bindparam("agent"), L.state == const(LaneState.PAUSED.value)
    )
)

REFRESH_LANE: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(L.agent == bindparam("agent"))
        .values(
            pending=L.pending + bindparam("change"),
            not_before=case((_is_delayed(), L.not_before), else_=null()),
            head_key=case((L.claim_token.is_(None), _head_key()), else_=null()),
        )
    )
)

FREE_LANE: Statement[FreedLane] = Statement(
    lambda: (
        update(LANES)
        .where(L.agent == bindparam("agent"), L.claim_token == bindparam("token"))
        .values(
            claim_token=null(),
            lease_expires_at=null(),
            lease_ms=null(),
            not_before=case((_is_delayed(), L.not_before), else_=null()),
            head_key=_head_key(),
        )
        .returning(L.batch, L.claimed_at, L.claimed_by)
    )
)

CREATE_LANE: Statement[None] = Statement(
    lambda: insert(LANES).from_select(
        [
            *(L.agent, L.state, L.ordering, L.batching, L.max_depth, L.overflow, L.max_attempts),
            *(L.outside, L.pending, L.claimed_at, L.created_at, L.updated_at),
        ],
        select(
            bindparam("agent", type_=L.agent.type),
            const(LaneState.ACTIVE.value),
            *(bindparam(name, type_=L[name].type) for name in _POLICY_COLUMNS),
            false(),
            const(0),
            const(0),
            bindparam("now", type_=L.created_at.type),
            bindparam("now", type_=L.updated_at.type),
        )
        .where(const(1) == const(1))
        .suffix_with("ON CONFLICT DO NOTHING"),
    )
)

SET_POLICY: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(L.agent == bindparam("lane"))
        .values(
            {**{name: bindparam(name) for name in _POLICY_COLUMNS}, "updated_at": bindparam("now")}
        )
    )
)

SET_LANE_STATE: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(L.agent == bindparam("lane"))
        .values(state=bindparam("target"), reason=bindparam("why"), updated_at=bindparam("now"))
    )
)

DELAY_LANE: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(L.agent == bindparam("lane"))
        .values(not_before=bindparam("until"), head_key=null())
    )
)


def sort_key(ordering: str, due_at: int, weight: int, deadline: int | None) -> int:
    """The position of a message in its lane: the lowest key is claimed first.

    A priority counts as milliseconds of waiting, so keys never change while messages wait.
    """
    match Ordering(ordering):
        case Ordering.FIFO:
            return due_at
        case Ordering.PRIORITY:
            return due_at - weight
        case Ordering.DEADLINE:
            return due_at + DAY if deadline is None else deadline


def _weight_column() -> ColumnElement[int]:
    return case(
        *((M.priority == const(int(each)), const(each.weight)) for each in Priority), else_=const(0)
    )


def _sort_key_column(ordering: Ordering) -> ColumnElement[int]:
    """The same as `sort_key`, in SQL."""
    match ordering:
        case Ordering.FIFO:
            return M.due_at
        case Ordering.PRIORITY:
            return M.due_at - _weight_column()
        case Ordering.DEADLINE:
            return func.coalesce(M.deadline, M.due_at + const(DAY))


def _update_sort_keys(ordering: Ordering) -> Statement[None]:
    return Statement(
        lambda: (
            update(MESSAGES)
            .where(M.agent == bindparam("lane"), M.status != const(MessageState.COMPLETED.value))
            .values(sort_key=_sort_key_column(ordering))
        )
    )


SET_SORT_KEYS: dict[Ordering, Statement[None]] = {
    ordering: _update_sort_keys(ordering) for ordering in Ordering
}


def lock_lane(tx: Transaction, agent: str) -> Lane:
    """The agent's lane, locked until the transaction ends."""
    lane = tx.one(LOCK_LANE, {"agent": agent})
    if lane is None:
        raise unknown_agent(tx, agent)
    return lane


def lock_lanes(tx: Transaction, agents: Iterable[str]) -> dict[str, Lane]:
    """The lanes of these agents, each locked once, in the order of their names."""
    return ask_for_locks(tx, agents)()


def ask_for_locks(tx: Transaction, agents: Iterable[str]) -> Callable[[], dict[str, Lane]]:
    """The same, but the lanes are read later; what is asked for next is read under the locks."""
    names = sorted(set(agents))
    locked = [tx.one_deferred(LOCK_LANE, {"agent": name}) for name in names]

    def lanes() -> dict[str, Lane]:
        found: dict[str, Lane] = {}
        for name, lane in zip(names, [each() for each in reversed(locked)][::-1], strict=True):
            if lane is None:
                raise unknown_agent(tx, name)
            found[name] = lane
        return found

    return lanes


def unknown_agent(tx: Transaction, agent: str) -> UnknownAgent:
    """The error for an id without a lane, with a suggestion."""
    return UnknownAgent.of(agent, [name for (name,) in tx.all(SELECT_OPEN_LANES, {})])


def lock_claimed_lane(tx: Transaction, token: str) -> Lane:
    """The lane of this claim, locked."""
    try:
        return lock_lane(tx, agent_of_token(token))
    except UnknownAgent:
        raise StaleToken(f"{token[:60]!r} is not the token of a claim") from None


def agent_of_token(token: str) -> str:
    """The agent whose lane this token claims; raises `StaleToken` if it is not a token."""
    if not _TOKEN.fullmatch(token):
        raise StaleToken(f"{token[:60]!r} is not the token of a claim")
    return agent_of(token)


def refresh_lane(tx: Transaction, agent: str, change: int) -> None:
    """Update the lane's head, and add `change` to its number of pending messages."""
    tx.write(REFRESH_LANE, {"agent": agent, "change": change, "now": tx.now})
    tx.wake("messages")


def create_lane(tx: Transaction, agent: str, policy: LanePolicy | None = None) -> None:
    """Create a lane for this agent; an existing lane is not changed."""
    values = _policy_values(tx, policy or LanePolicy())
    tx.write(CREATE_LANE, {**values, "agent": check_name(agent), "now": tx.now})


def get_lane_policy(tx: Transaction, agent: str) -> LanePolicy:
    """The policy of a lane, which is locked until the transaction ends."""
    lane = lock_lane(tx, agent)
    return LanePolicy(
        ordering=Ordering(lane.ordering),
        batching=Batching(lane.batching),
        max_depth=lane.max_depth,
        overflow=Overflow(lane.overflow),
        max_attempts=lane.max_attempts,
    )


def configure_lane(tx: Transaction, agent: str, policy: LanePolicy) -> None:
    """Change the policy of a lane; its pending messages are put into the new order."""
    lane = lock_lane(tx, agent)
    tx.write(SET_POLICY, {**_policy_values(tx, policy), "lane": agent, "now": tx.now})
    if policy.ordering != lane.ordering:
        tx.write(SET_SORT_KEYS[policy.ordering], {"lane": agent})
    refresh_lane(tx, agent, 0)


def pause_lane(tx: Transaction, agent: str, reason: str) -> None:
    """Stop claims from this lane; new messages are still accepted."""
    _set_lane_state(tx, agent, LaneState.PAUSED, reason)


def pause_reason(tx: Transaction, agent: str) -> str | None:
    """Why this lane is paused; None if it is not."""
    row = tx.one(SELECT_PAUSE, {"agent": agent})
    return None if row is None else row[0] or ""


def resume_lane(tx: Transaction, agent: str) -> None:
    """Accept and claim messages again."""
    _set_lane_state(tx, agent, LaneState.ACTIVE, None)


def drain_lane(tx: Transaction, agent: str, reason: str = "draining") -> None:
    """Accept no new messages; the pending ones are still claimed."""
    _set_lane_state(tx, agent, LaneState.DRAINING, reason)


def archive_lane(tx: Transaction, agent: str, reason: str = "archived") -> None:
    """Close an empty lane: it accepts and claims nothing."""
    lane = lock_lane(tx, agent)
    if lane.pending or lane.claim_token is not None:
        raise LaneBusy(
            f"@{agent} has unfinished messages: {lane.pending} pending"
            + (", and a run in progress" if lane.claim_token is not None else "")
        )
    _set_lane_state(tx, agent, LaneState.ARCHIVED, reason)


def delay_lane(tx: Transaction, agent: str, until: int) -> None:
    """Stop claims from this lane until then, because of the provider's rate limit."""
    tx.write(DELAY_LANE, {"lane": agent, "until": until})


def _set_lane_state(tx: Transaction, agent: str, target: LaneState, reason: str | None) -> None:
    check_text(agent, tx.settings.message_bytes, "the agent id")
    check_text(reason or "", tx.settings.message_bytes, "the reason")
    state = LaneState(lock_lane(tx, agent).state)
    if state is target:
        return
    if target not in LANE_STATES[state].moves_to:
        raise IllegalMove(f"@{agent} is {state} and cannot become {target}")
    tx.write(SET_LANE_STATE, {"lane": agent, "target": target.value, "why": reason, "now": tx.now})
    refresh_lane(tx, agent, 0)
    append_event(tx, _EVENT_OF_STATE[target](agent=agent, reason=reason))


def _policy_values(tx: Transaction, policy: LanePolicy) -> dict[str, object]:
    for name, number in (("depth", policy.max_depth), ("attempts", policy.max_attempts)):
        if number is not None and not 0 <= number <= MAX_COUNT:
            raise BadNumber(f"max_{name} is out of range: {number}")
    return {
        "ordering": policy.ordering.value,
        "batching": policy.batching.value,
        "max_depth": policy.max_depth,
        "overflow": policy.overflow.value,
        "max_attempts": policy.max_attempts or tx.settings.max_attempts,
    }
