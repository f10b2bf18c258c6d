"""The states of messages, responses and lanes: one table for each, with the allowed transitions.

Every named set of states is derived from its table; nothing else lists states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

State = TypeVar("State", bound=StrEnum)


class MessageState(StrEnum):
    """The state of a message."""

    PENDING = "pending"
    PROCESSING = "processing"
    HELD = "held"
    COMPLETED = "completed"
    DEAD = "dead"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class ResponseState(StrEnum):
    """The state of a response."""

    PENDING = "pending"
    ACKED = "acked"
    DEAD = "dead"
    UNKNOWN = "unknown"


class LaneState(StrEnum):
    """The state of an agent's lane."""

    ACTIVE = "active"
    PAUSED = "paused"
    DRAINING = "draining"
    ARCHIVED = "archived"


@dataclass(frozen=True, kw_only=True)
class StateInfo(Generic[State]):
    """The meaning of a state, and its allowed transitions."""

    label: str
    """Its meaning, as a row of docs/reference/states.md."""
    moves_to: frozenset[State] = field(default_factory=frozenset)
    colour: str | None = None
    """Its style in views; bold if it needs a person's action."""
    active: bool = False
    """Leaves this state automatically."""
    terminal: bool = False
    """Leaves this state only by a person's command."""
    archived: bool = False
    """Moved to the archive after a day."""
    needs_person: bool = False
    """Needs a person's decision."""
    accepts: bool = False
    """A lane accepts new messages."""
    claimable: bool = False
    """Messages of the lane are claimed."""

    @property
    def style(self) -> str:
        """Its style in views."""
        return f"bold {self.colour}" if self.needs_person else self.colour or ""


M, R, L = MessageState, ResponseState, LaneState

# The partial indexes of `messages` list the states in this order. SQLite uses such an index only
# for a query that lists them in the same order.
MESSAGE_STATES: Mapping[MessageState, StateInfo[MessageState]] = {
    M.PENDING: StateInfo(
        label="waits to be claimed",
        moves_to=frozenset({M.PROCESSING, M.HELD, M.CANCELLED, M.EXPIRED, M.DEAD}),
        colour="yellow",
        active=True,
    ),
    M.PROCESSING: StateInfo(
        label="claimed by a worker; its run is in progress",
        moves_to=frozenset({M.COMPLETED, M.PENDING, M.DEAD, M.HELD, M.CANCELLED}),
        colour="green",
        active=True,
    ),
    M.COMPLETED: StateInfo(label="answered", terminal=True, archived=True),
    M.DEAD: StateInfo(
        label="failed; not retried automatically",
        moves_to=frozenset({M.PENDING}),
        colour="red",
        terminal=True,
        needs_person=True,
    ),
    M.HELD: StateInfo(
        label="waits for a person to resume or cancel it",
        moves_to=frozenset({M.PENDING, M.CANCELLED, M.EXPIRED}),
        colour="yellow",
        needs_person=True,
    ),
    M.CANCELLED: StateInfo(
        label="cancelled by a person",
        moves_to=frozenset({M.PENDING}),
        terminal=True,
        archived=True,
    ),
    M.EXPIRED: StateInfo(
        label="still pending at its deadline",
        moves_to=frozenset({M.PENDING}),
        terminal=True,
        archived=True,
    ),
}

RESPONSE_STATES: Mapping[ResponseState, StateInfo[ResponseState]] = {
    R.PENDING: StateInfo(
        label="waits to be delivered or read",
        moves_to=frozenset({R.ACKED, R.DEAD, R.UNKNOWN}),
        active=True,
    ),
    R.ACKED: StateInfo(label="delivered or read", terminal=True, archived=True),
    R.DEAD: StateInfo(
        label="not delivered; not retried automatically",
        moves_to=frozenset({R.PENDING}),
        terminal=True,
        needs_person=True,
    ),
    R.UNKNOWN: StateInfo(
        label="sent without a confirmation; it may have arrived",
        moves_to=frozenset({R.PENDING, R.ACKED, R.DEAD}),
        needs_person=True,
    ),
}

LANE_STATES: Mapping[LaneState, StateInfo[LaneState]] = {
    L.ACTIVE: StateInfo(
        label="accepts messages and runs them",
        moves_to=frozenset({L.PAUSED, L.DRAINING, L.ARCHIVED}),
        accepts=True,
        claimable=True,
    ),
    L.PAUSED: StateInfo(
        label="accepts messages and runs none",
        moves_to=frozenset({L.ACTIVE, L.DRAINING, L.ARCHIVED}),
        accepts=True,
        needs_person=True,
    ),
    L.DRAINING: StateInfo(
        label="accepts no new messages and runs the pending ones",
        moves_to=frozenset({L.ACTIVE, L.PAUSED, L.ARCHIVED}),
        claimable=True,
        needs_person=True,
    ),
    L.ARCHIVED: StateInfo(
        label="accepts and runs nothing; its agent was removed",
        moves_to=frozenset({L.ACTIVE}),
    ),
}

ACTIVE_STATES = tuple(each for each, info in MESSAGE_STATES.items() if info.active)
UNFINISHED_STATES = tuple(each for each, info in MESSAGE_STATES.items() if not info.terminal)
WAITING_STATES = tuple(each for each in UNFINISHED_STATES if each is not M.PROCESSING)
TERMINAL_STATES = tuple(each for each, info in MESSAGE_STATES.items() if info.terminal)
UNANSWERED_STATES = tuple(each for each in TERMINAL_STATES if MESSAGE_STATES[each].moves_to)
"""Ended without an answer; a person may retry or drop it."""
ARCHIVED_STATES = tuple(each for each, info in MESSAGE_STATES.items() if info.archived)
NEEDS_PERSON_STATES = tuple(each for each, info in MESSAGE_STATES.items() if info.needs_person)

NO_REASON = "no reason given"
"""Shown for a row in a state that usually has a recorded reason."""

UNDELIVERED_STATES = tuple(each for each, info in RESPONSE_STATES.items() if info.needs_person)
OPEN_RESPONSE_STATES = tuple(
    each for each, info in RESPONSE_STATES.items() if R.ACKED in info.moves_to
)
"""A person may ack or drop it."""

CLAIMABLE_LANE_STATES = tuple(each for each, info in LANE_STATES.items() if info.claimable)


def source_states(target: MessageState) -> tuple[MessageState, ...]:
    """The states from which a message can change to `target`."""
    return tuple(each for each, info in MESSAGE_STATES.items() if target in info.moves_to)
