"""Follow a conversation: its current status, and its new events and responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from shlex import quote

from sqlalchemy import Select, bindparam, select

from bullpen.core.answers.aggregate import SELECT_LAST_PART
from bullpen.core.background import count_live_workers
from bullpen.core.events.log import EventRecord
from bullpen.core.events.tail import EventTail
from bullpen.core.inspect.conversations import (
    StateCounts,
    count_messages,
    select_column,
)
from bullpen.core.inspect.event_details import EventDetails, event_details
from bullpen.core.models import LANES, MESSAGES, RESPONSES
from bullpen.core.models.archive import in_conversation
from bullpen.core.models.base import const, decode_texts
from bullpen.core.states import ACTIVE_STATES, LaneState, MessageState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

R = RESPONSES.c
L = LANES.c
M = MESSAGES.c

PROCESSOR, SCHEDULER = "processor", "scheduler"
"""The kinds of these processes in the table of workers."""


@dataclass(frozen=True, slots=True)
class FollowedAnswer:
    """A response of the conversation."""

    id: int
    agent: str
    message: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FollowedEvent:
    """An event of the conversation, with its details."""

    record: EventRecord
    details: EventDetails


@dataclass(slots=True)
class ConversationFollower:
    """One reader's position in one conversation."""

    store: Store
    conversation_id: str
    channel: str
    """Only the responses on this channel are read."""
    tail: EventTail
    _seen: set[int] = field(default_factory=set)

    def new_events(self) -> list[FollowedEvent]:
        """The events since the last call, in order."""
        records = [
            each for each in self.tail.read() if each.conversation_id == self.conversation_id
        ]
        if not records:
            return []
        with self.store.read() as tx:
            details = event_details(tx, records)
        return [FollowedEvent(*each) for each in zip(records, details, strict=True)]

    def new_answers(self, tx: Transaction) -> list[FollowedAnswer]:
        """The responses that no earlier call returned.

        Each id is remembered: on PostgreSQL a lower one may be committed after a higher one.
        """
        values = {"conversation": self.conversation_id, "channel": self.channel}
        rows = [row for row in tx.all(SELECT_ANSWERS, values) if row[0] not in self._seen]
        self._seen.update(row[0] for row in rows)
        return [
            FollowedAnswer(id_, agent, message, tuple(decode_texts(files)))
            for id_, agent, message, files in rows
        ]


SELECT_ANSWERS: Statement[tuple[int, str, str, str | None]] = Statement(
    lambda: (
        select(R.id, R.agent, R.message, R.files)
        .where(R.message_id.in_(select_column("message_id")), R.channel == bindparam("channel"))
        .order_by(R.id)
    )
)


@dataclass(frozen=True, slots=True)
class UnfinishedMessage:
    """A message without an answer, and its lane."""

    message_id: str
    agent: str
    state: MessageState
    error: str
    available_at: int
    paused: str | None
    """The reason why its lane is paused; None if it is not."""
    outside: bool

    @property
    def active(self) -> bool:
        """Whether it continues without a person."""
        return self.state in ACTIVE_STATES


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a conversation does not continue, and the command that helps."""

    text: str
    command: str
    agent: str = ""
    """The agent that is paused, if that is the reason."""


NO_PROCESSOR = Obstacle("the processor is not running", "bullpen up")
_NO_SCHEDULER = Obstacle(
    "the scheduler, which sends the team's combined answer, is not running", "bullpen up"
)


@dataclass(frozen=True, slots=True)
class ConversationStatus:
    """A conversation at one moment."""

    counts: StateCounts
    unfinished: tuple[UnfinishedMessage, ...]
    aggregating: bool
    """Whether parts of an aggregate wait to be sent."""
    workers: Mapping[str, int]
    now: int

    @property
    def active(self) -> tuple[UnfinishedMessage, ...]:
        """The messages that are pending or processing."""
        return tuple(each for each in self.unfinished if each.active)

    @property
    def at_rest(self) -> bool:
        """Whether nothing more happens in it without a person."""
        return not self.active and not self.aggregating

    def in_states(self, *states: MessageState) -> tuple[UnfinishedMessage, ...]:
        """The unfinished messages in one of these states."""
        return tuple(each for each in self.unfinished if each.state in states)

    def obstacles(self, until: float) -> tuple[Obstacle, ...]:
        """Why it cannot continue before this moment; empty if some of it can."""
        obstacles = [self._obstacle(each, until) for each in self.active]
        if self.aggregating and not obstacles:
            obstacles.append(None if self.workers.get(SCHEDULER) else _NO_SCHEDULER)
        if None in obstacles:
            return ()
        return tuple(dict.fromkeys(each for each in obstacles if each is not None))

    def _obstacle(self, each: UnfinishedMessage, until: float) -> Obstacle | None:
        if each.state is MessageState.PENDING and each.paused is not None:
            return Obstacle(
                f"@{each.agent} is paused ({each.paused})",
                f"bullpen agent resume {each.agent}",
                each.agent,
            )
        if not each.outside and not self.workers.get(PROCESSOR):
            return NO_PROCESSOR
        if each.state is MessageState.PENDING and each.available_at > until:
            return Obstacle(
                f"{each.message_id} is not due before the wait ends",
                f"bullpen trace {quote(each.message_id)}",
            )
        return None


def get_conversation_status(tx: Transaction, conversation_id: str) -> ConversationStatus:
    """The current status of this conversation."""
    values: dict[str, object] = {"conversation": conversation_id}
    return ConversationStatus(
        counts=count_messages(tx, conversation_id),
        unfinished=tuple(_unfinished_message(*row) for row in tx.all(SELECT_UNFINISHED, values)),
        aggregating=tx.one(SELECT_LAST_PART, values) is not None,
        workers=count_live_workers(tx),
        now=tx.now,
    )


def _unfinished_rows() -> Select[tuple[object, ...]]:
    messages = (
        select(M.id, M.message_id, M.agent, M.status, M.last_error, M.available_at)
        .where(in_conversation(), M.status != const(MessageState.COMPLETED.value))
        .subquery()
        .c
    )
    return (
        select(
            *(
                messages.message_id,
                messages.agent,
                messages.status,
                messages.last_error,
                messages.available_at,
            ),
            *(L.state, L.reason, L.outside),
        )
        .join(LANES, L.agent == messages.agent)
        .order_by(messages.id)
    )


SELECT_UNFINISHED: Statement[tuple[str, str, str, str | None, int, str, str | None, bool]] = (
    Statement(_unfinished_rows)
)


def _unfinished_message(
    message_id: str,
    agent: str,
    state: str,
    error: str | None,
    available_at: int,
    lane: str,
    reason: str | None,
    outside: bool,
) -> UnfinishedMessage:
    return UnfinishedMessage(
        message_id=message_id,
        agent=agent,
        state=MessageState(state),
        error=error or "",
        available_at=available_at,
        paused=(reason or "by hand") if lane == LaneState.PAUSED else None,
        outside=bool(outside),  # SQLite has no booleans
    )
