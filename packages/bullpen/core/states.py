"""The states of messages, responses and lanes, and the moves between them that are allowed."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from bullpen.core.errors import BadState


class MessageState(StrEnum):
    """Where a message is in its life."""

    PENDING = "pending"
    PROCESSING = "processing"
    HELD = "held"
    COMPLETED = "completed"
    DEAD = "dead"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class ResponseState(StrEnum):
    """Where a response is on its way to a person."""

    PENDING = "pending"
    ACKED = "acked"
    DEAD = "dead"
    UNKNOWN = "unknown"


class LaneState(StrEnum):
    """What an agent's lane lets in and out."""

    ACTIVE = "active"
    PAUSED = "paused"
    DRAINING = "draining"
    ARCHIVED = "archived"


State = TypeVar("State", bound=StrEnum)

M, R, L = MessageState, ResponseState, LaneState

MESSAGE_TRANSITIONS: dict[MessageState, frozenset[MessageState]] = {
    M.PENDING: frozenset({M.PROCESSING, M.HELD, M.CANCELLED, M.EXPIRED, M.DEAD}),
    M.PROCESSING: frozenset({M.COMPLETED, M.PENDING, M.DEAD, M.HELD, M.CANCELLED}),
    M.HELD: frozenset({M.PENDING, M.CANCELLED, M.EXPIRED}),
    M.DEAD: frozenset({M.PENDING}),
    M.CANCELLED: frozenset({M.PENDING}),
    M.EXPIRED: frozenset({M.PENDING}),
    M.COMPLETED: frozenset(),
}

RESPONSE_TRANSITIONS: dict[ResponseState, frozenset[ResponseState]] = {
    R.PENDING: frozenset({R.ACKED, R.DEAD, R.UNKNOWN}),
    R.UNKNOWN: frozenset({R.PENDING, R.ACKED, R.DEAD}),
    R.DEAD: frozenset({R.PENDING}),
    R.ACKED: frozenset(),
}

LANE_TRANSITIONS: dict[LaneState, frozenset[LaneState]] = {
    L.ACTIVE: frozenset({L.PAUSED, L.DRAINING, L.ARCHIVED}),
    L.PAUSED: frozenset({L.ACTIVE, L.DRAINING, L.ARCHIVED}),
    L.DRAINING: frozenset({L.ACTIVE, L.PAUSED, L.ARCHIVED}),
    L.ARCHIVED: frozenset({L.ACTIVE}),
}

TERMINAL_STATES = frozenset({M.COMPLETED, M.DEAD, M.CANCELLED, M.EXPIRED})
"""A message in one of these moves again only when a person says so."""

ARCHIVED_STATES = (M.COMPLETED, M.CANCELLED, M.EXPIRED)
"""What retention takes away after a day; the dead wait for a person.

In the order of the index of the finished: SQLite uses it for no other.
"""


def source_states(target: MessageState) -> tuple[MessageState, ...]:
    """The states from which a message may move to `target`."""
    return tuple(state for state, targets in MESSAGE_TRANSITIONS.items() if target in targets)


def parse_message_state(name: str) -> MessageState:
    """The message state of this name."""
    return _parse_state(MessageState, name)


def parse_response_state(name: str) -> ResponseState:
    """The response state of this name."""
    return _parse_state(ResponseState, name)


def parse_lane_state(name: str) -> LaneState:
    """The lane state of this name."""
    return _parse_state(LaneState, name)


def _parse_state(kind: type[State], name: str) -> State:
    try:
        return kind(name)
    except ValueError:
        known = ", ".join(kind)
        raise BadState(f"there is no state {name!r}", hint=f"The states are: {known}.") from None
