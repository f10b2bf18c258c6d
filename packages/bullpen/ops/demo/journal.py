"""The journal of a simulation: its rows, without those that retention has removed."""

from __future__ import annotations

from collections.abc import Sequence

from bullpen.core.events.append import encode_json
from bullpen.core.events.base import Event
from bullpen.ops.demo.agenda import Agenda
from bullpen.ops.demo.in_flight import QueuedMessage, StoredResponse
from bullpen.ops.demo.plan import HistoryPlan
from bullpen.ops.demo.rows import (
    AttemptRow,
    EventRow,
    HistoryRow,
    PostRow,
    Rows,
)

FULL = 20_000
"""The number of events after which rows are taken."""


class Journal:
    """Collects rows until they are taken."""

    def __init__(self, plan: HistoryPlan, agenda: Agenda, detailed_from: int) -> None:
        self._agenda = agenda
        self._events_from = plan.events_from
        self._attempts_from = plan.attempts_from
        self._live_from = plan.live_from
        self._history_from = plan.history_from
        self._detailed_from = max(detailed_from, plan.archived_from)
        self._rows = Rows()
        self._texts = 0
        self._posts = 0
        self.attempts = 0

    @property
    def detailed(self) -> bool:
        """Whether the events of each step, the texts and the archive are written."""
        return self._agenda.now >= self._detailed_from

    @property
    def is_full(self) -> bool:
        """Whether the rows should be taken."""
        return len(self._rows.events) >= FULL

    def take(self) -> Rows:
        """The rows since the last time."""
        rows, self._rows = self._rows, Rows()
        return rows

    def event(self, event: Event, written: int | None = None) -> None:
        """Record an event of now; `written` is the row id that the database would look up."""
        now = self._agenda.now
        if now < self._events_from:
            return
        about, data = event.about, event.data
        if event.written_field is not None:
            data = {**data, event.written_field: written}
        self._rows.events.append(
            EventRow(
                event.type,
                about.agent,
                about.conversation_id,
                about.message_id,
                encode_json(data) if data else None,
                now,
            )
        )

    def attempt(self, row: AttemptRow) -> None:
        """Record a run that ended now."""
        self.attempts += 1
        if row.finished_at >= self._attempts_from:
            self._rows.attempts.append(row)

    def finished(self, message: QueuedMessage) -> None:
        """Record a message that was completed or cancelled now."""
        if self._agenda.now >= self._live_from:
            self._rows.messages.append(message.as_row())
        elif self.detailed:
            self._rows.messages_archive.append(message.as_row())

    def delivered(self, response: StoredResponse) -> None:
        """Record a response that was delivered now."""
        now = self._agenda.now
        if now >= self._live_from:
            self._rows.responses.append(response.as_row(now))
        elif self.detailed:
            self._rows.responses_archive.append(response.as_row(now))

    def text(
        self, agent: str, role: str, channel: str, sender: str, message_id: str, content: str
    ) -> int | None:
        """Record a message to an agent or by it; returns the id of the row, if there is one."""
        if not self.detailed or self._agenda.now < self._history_from:
            return None
        self._texts += 1
        self._rows.agent_messages.append(
            HistoryRow(
                *(self._texts, agent, role, channel, sender, message_id, content),
                self._agenda.now,
            )
        )
        return self._texts

    def post(self, team: str, author: str, text: str) -> int:
        """Record a post in a room; returns its id."""
        self._posts += 1
        if self._agenda.now >= self._history_from:
            row = PostRow(self._posts, team, author, text, self._agenda.now)
            self._rows.chat_messages.append(row)
        return self._posts

    def unfinished(
        self, messages: Sequence[QueuedMessage], responses: Sequence[StoredResponse]
    ) -> None:
        """Record what is still pending, held, dead or unknown at the end."""
        self._rows.messages += [each.as_row() for each in messages]
        self._rows.responses += [each.as_row(None) for each in responses]
