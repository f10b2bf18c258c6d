"""Follows one conversation: what happens in it, and each answer of it once, as they come."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from sqlalchemy import bindparam, select

from bullpen.core.conversations.members import select_column
from bullpen.core.events.facts import EventDetails, event_details
from bullpen.core.events.tail import MAX_EVENT_ID, Event, EventTail
from bullpen.core.models import RESPONSES
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

    event: Event
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
