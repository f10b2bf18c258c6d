"""The rows of a history by table, without those that retention has removed."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import Table

from bullpen.core.events.append import encode_json
from bullpen.core.events.base import Event
from bullpen.core.models import (
    AGENT_MESSAGES,
    ATTEMPTS,
    CHAT_MESSAGES,
    CHATS,
    EVENTS,
    MESSAGES_ARCHIVE,
    RESPONSES_ARCHIVE,
    SENDERS,
)
from bullpen.ops.demo.engine import Engine
from bullpen.ops.demo.state import QueuedMessage, StoredResponse

Row = tuple[object, ...]

FULL = 20_000
"""The number of events after which rows are taken."""


def _columns(table: Table, source: type | None = None) -> tuple[str, ...]:
    """The columns of a table, or those of them that the objects have that become its rows."""
    return tuple(each.name for each in table.c if source is None or hasattr(source, each.name))


_MESSAGE = _columns(MESSAGES_ARCHIVE, QueuedMessage)
_RESPONSE = _columns(RESPONSES_ARCHIVE, StoredResponse)

COLUMNS: Mapping[str, tuple[str, ...]] = {
    # The database numbers runs and events, in the order in which they are written.
    "attempts": _columns(ATTEMPTS)[1:],
    "events": _columns(EVENTS)[1:],
    "messages": _MESSAGE,
    "messages_archive": _MESSAGE,
    "responses": _RESPONSE,
    "responses_archive": _RESPONSE,
    "agent_messages": _columns(AGENT_MESSAGES),
    "chat_messages": _columns(CHAT_MESSAGES),
    "senders": _columns(SENDERS),
    "chats": _columns(CHATS),
}
"""The columns that are written, by table."""


def _row_type(table: str, *, sparse: bool) -> Callable[..., Row]:
    """Makes rows of values by column; in sparse ones, a column without a value is NULL."""
    columns = COLUMNS[table]
    return namedtuple(table, columns, defaults=[None] * len(columns) if sparse else ())


AttemptRow = _row_type("attempts", sparse=False)
SenderRow = _row_type("senders", sparse=True)
ChatRow = _row_type("chats", sparse=True)

_message_row = attrgetter(*_MESSAGE)
_response_row = attrgetter(*_RESPONSE)


class LaneRow(NamedTuple):
    """The columns of an agent's lane that its messages determine."""

    agent: str
    pending: int
    head_key: int | None
    newest_at: int | None
    not_before: int | None
    claimed_by: str | None
    claimed_at: int


@dataclass(slots=True)
class Rows:
    """The rows of one part of a history."""

    tables: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in COLUMNS})
    lanes: list[LaneRow] = field(default_factory=list)
    """The last part has them."""


class Journal:
    """Collects the rows of what happens in a simulation, until they are taken."""

    def __init__(self, engine: Engine, detailed_from: int) -> None:
        plan = engine.plan
        self._engine = engine
        self._events_from = plan.events_from
        self._attempts_from = plan.attempts_from
        self._live_from = plan.live_from
        self._history_from = plan.history_from
        self._detailed_from = max(detailed_from, plan.archived_from)
        self._begin()
        self._texts = 0
        self._posts = 0
        self.attempts = 0

    @property
    def detailed(self) -> bool:
        """Whether the events of each step, the texts and the archive are written."""
        return self._engine.now >= self._detailed_from

    @property
    def is_full(self) -> bool:
        """Whether the rows should be taken."""
        return len(self._events) >= FULL

    def take(self) -> Rows:
        """The rows since the last time."""
        rows = self._rows
        self._begin()
        return rows

    def event(self, event: Event, written: int | None = None) -> None:
        """Record an event of now; `written` is the row id that the database would look up."""
        now = self._engine.now
        if now < self._events_from:
            return
        about, data = event.about, event.data
        if event.written_field is not None:
            data = {**data, event.written_field: written}
        # In the order of the columns.
        self._events.append(
            (
                event.type,
                about.agent,
                about.conversation_id,
                about.message_id,
                encode_json(data) if data else None,
                now,
            )
        )

    def attempt(self, row: Row) -> None:
        """Record a run that ended now."""
        self.attempts += 1
        if self._engine.now >= self._attempts_from:
            self._attempts.append(row)

    def finished(self, message: QueuedMessage) -> None:
        """Record a message that was completed or cancelled now."""
        if self._engine.now >= self._live_from:
            self._rows.tables["messages"].append(_message_row(message))
        elif self.detailed:
            self._rows.tables["messages_archive"].append(_message_row(message))

    def delivered(self, response: StoredResponse) -> None:
        """Record a response that was delivered now."""
        if self._engine.now >= self._live_from:
            self._rows.tables["responses"].append(_response_row(response))
        elif self.detailed:
            self._rows.tables["responses_archive"].append(_response_row(response))

    def text(
        self, agent: str, role: str, channel: str, sender: str, message_id: str, content: str
    ) -> int | None:
        """Record a message to an agent or by it; returns the id of the row, if there is one."""
        now = self._engine.now
        if not self.detailed or now < self._history_from:
            return None
        self._texts += 1
        self._rows.tables["agent_messages"].append(
            (self._texts, agent, role, channel, sender, message_id, content, now)
        )
        return self._texts

    def post(self, team: str, author: str, text: str) -> int:
        """Record a post in a room; returns its id."""
        now = self._engine.now
        self._posts += 1
        if now >= self._history_from:
            self._rows.tables["chat_messages"].append((self._posts, team, author, text, now))
        return self._posts

    def unfinished(
        self, messages: Iterable[QueuedMessage], responses: Iterable[StoredResponse]
    ) -> None:
        """Record what is still pending, held, dead or unknown at the end."""
        self._rows.tables["messages"] += map(_message_row, messages)
        self._rows.tables["responses"] += map(_response_row, responses)

    def _begin(self) -> None:
        self._rows = Rows()
        self._events = self._rows.tables["events"]
        self._attempts = self._rows.tables["attempts"]
