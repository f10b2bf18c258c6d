"""Follow a conversation: its status now, and its events as they come."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Select, bindparam, select

from bullpen.core.answers.aggregate import SELECT_LAST_PART
from bullpen.core.background import count_live_workers
from bullpen.core.events.tail import MAX_EVENT_ID, EventRecord, EventTail
from bullpen.core.inspect.conversations import (
    StateCounts,
    count_messages,
    select_column,
)
from bullpen.core.inspect.event_details import EventDetails, event_details
from bullpen.core.models import LANES, MESSAGES, RESPONSES
from bullpen.core.models.archive import in_conversation
from bullpen.core.models.base import const
from bullpen.core.states import ACTIVE_STATES, LaneState, MessageState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

R = RESPONSES.c

SELECT_ANSWERS: Statement[tuple[int, str, str, str | None]] = Statement(
    lambda: (
        select(R.id, R.agent, R.message, R.files)
        .where(R.message_id.in_(select_column("message_id")), R.channel == bindparam("channel"))
        .order_by(R.id)
    )
)


@dataclass(frozen=True, slots=True)
class FollowedAnswer:
    """What somebody was answered."""

    id: int
    agent: str
    message: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FollowedEvent:
    """An event of the conversation, with what is known besides."""

    record: EventRecord
    facts: EventDetails


@dataclass(slots=True)
class ConversationFollower:
    """One reader's place in one conversation."""

    store: Store
    conversation_id: str
    channel: str
    """Whose answers are wanted."""
    tail: EventTail
    _seen: set[int] = field(default_factory=set)

    def happened(self) -> list[FollowedEvent]:
        """What happened since the last time, in order."""
        found = [each for each in self.tail.read() if each.conversation_id == self.conversation_id]
        if not found:
            return []
        with self.store.read() as tx:
            facts = event_details(tx, found)
        return [FollowedEvent(*each) for each in zip(found, facts, strict=True)]

    def answers(self, tx: Transaction) -> list[FollowedAnswer]:
        """The answers that were not given before.

        By their numbers, and not by the last of them: on PostgreSQL a lower one may be committed
        after a higher one.
        """
        asked = {"conversation": self.conversation_id, "channel": self.channel}
        rows = [row for row in tx.all(SELECT_ANSWERS, asked) if row[0] not in self._seen]
        self._seen.update(row[0] for row in rows)
        return [
            FollowedAnswer(id_, agent, message, tuple(json.loads(files or "[]")))
            for id_, agent, message, files in rows
        ]


def last_event_id(tx: Transaction) -> int:
    """The place in the events before whatever this transaction sets off."""
    row = tx.one(MAX_EVENT_ID, {})
    return 0 if row is None or row[0] is None else row[0]


L = LANES.c
M = MESSAGES.c

PROCESSOR, SCHEDULER = "processor", "scheduler"
"""As these processes call themselves in the register."""


def _unfinished_rows() -> Select[tuple[object, ...]]:
    found = (
        select(M.id, M.message_id, M.agent, M.status, M.last_error, M.available_at)
        .where(in_conversation(), M.status != const(MessageState.COMPLETED.value))
        .subquery()
        .c
    )
    return (
        select(
            *(found.message_id, found.agent, found.status, found.last_error, found.available_at),
            *(L.state, L.reason, L.outside),
        )
        .join(LANES, L.agent == found.agent)
        .order_by(found.id)
    )


SELECT_UNFINISHED: Statement[tuple[str, str, str, str | None, int, str, str | None, bool]] = (
    Statement(_unfinished_rows)
)


@dataclass(frozen=True, slots=True)
class UnfinishedMessage:
    """A message that was not answered, or not yet, and the lane that it is in."""

    message_id: str
    agent: str
    state: MessageState
    why: str
    available_at: int
    paused: str | None
    """Why its lane is paused; None while it is not."""
    outside: bool

    @property
    def moves(self) -> bool:
        """Whether its turn is still to come, or has come."""
        return self.state in ACTIVE_STATES


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What keeps a conversation from going on, and the command that helps."""

    text: str
    helps: str


@dataclass(frozen=True, slots=True)
class ConversationStatus:
    """A conversation at one moment."""

    counts: StateCounts
    unfinished: tuple[UnfinishedMessage, ...]
    gathering: bool
    """Whether parts of a team's one answer wait to be sent."""
    workers: Mapping[str, int]
    now: int

    @property
    def moving(self) -> tuple[UnfinishedMessage, ...]:
        """What waits for its turn, or runs."""
        return tuple(each for each in self.unfinished if each.moves)

    @property
    def at_rest(self) -> bool:
        """Whether nothing more comes of it by itself."""
        return not self.moving and not self.gathering

    def of(self, *states: MessageState) -> tuple[UnfinishedMessage, ...]:
        """The messages in one of these states."""
        return tuple(each for each in self.unfinished if each.state in states)

    def obstacles(self, until: float) -> tuple[Obstacle, ...]:
        """What keeps all of it from going on before this moment; empty if something may go on."""
        found = [self._obstacle(each, until) for each in self.moving]
        if self.gathering and not found:
            found.append(None if self.workers.get(SCHEDULER) else _NO_SCHEDULER)
        obstacles = tuple(dict.fromkeys(each for each in found if each is not None))
        return () if None in found else obstacles

    def _obstacle(self, each: UnfinishedMessage, until: float) -> Obstacle | None:
        if each.state is MessageState.PENDING and each.paused is not None:
            return Obstacle(
                f"@{each.agent} is paused ({each.paused})", f"bullpen agent resume {each.agent}"
            )
        if not each.outside and not self.workers.get(PROCESSOR):
            return NO_PROCESSOR
        if each.state is MessageState.PENDING and each.available_at > until:
            return Obstacle(
                f"the turn of {each.message_id} comes later than you wait for",
                f"bullpen trace {each.message_id}",
            )
        return None


NO_PROCESSOR = Obstacle("no processor runs", "bullpen up")
_NO_SCHEDULER = Obstacle("no scheduler runs, which sends a team's one answer", "bullpen up")


def get_conversation_status(tx: Transaction, conversation_id: str) -> ConversationStatus:
    """How this conversation stands now."""
    asked: dict[str, object] = {"conversation": conversation_id}
    return ConversationStatus(
        counts=count_messages(tx, conversation_id),
        unfinished=tuple(_unfinished_message(*row) for row in tx.all(SELECT_UNFINISHED, asked)),
        gathering=tx.one(SELECT_LAST_PART, asked) is not None,
        workers=count_live_workers(tx),
        now=tx.now,
    )


def _unfinished_message(
    message_id: str,
    agent: str,
    state: str,
    why: str | None,
    available_at: int,
    lane: str,
    reason: str | None,
    outside: bool,
) -> UnfinishedMessage:
    return UnfinishedMessage(
        message_id=message_id,
        agent=agent,
        state=MessageState(state),
        why=why or "",
        available_at=available_at,
        paused=(reason or "by hand") if lane == LaneState.PAUSED else None,
        outside=bool(outside),  # SQLite has no booleans
    )
