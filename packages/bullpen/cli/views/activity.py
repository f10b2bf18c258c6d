"""Events as lines of the live views."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bullpen.cli.output import format_duration
from bullpen.cli.views.app import single_line
from bullpen.core.events.base import Event
from bullpen.core.events.company import RoomPosted
from bullpen.core.events.conversation import ChainStepDone, MessageEnqueued
from bullpen.core.events.log import EventRecord
from bullpen.core.events.message import MessageFailed
from bullpen.core.events.response import ResponseReady
from bullpen.core.events.system import SystemEvent
from bullpen.core.inspect.event_details import EventDetails
from bullpen.core.message import HEARTBEAT, ROOM
from bullpen.core.routing.tags import parse_tags, text_outside_tags

PROACTIVE = "proactive_"
"""The prefix of the ids of responses without a message."""


class ActivityKind(StrEnum):
    """The kind of a line, which is shown with it in a colour of its own."""

    ASKED = "message"
    HANDOFF = "handoff"
    SAID = "answer"
    POSTED = "post"
    TROUBLE = "problem"
    NOTE = "event"


@dataclass(frozen=True, slots=True)
class ActivityLine:
    """One line: the time, the kind, the subject and the text of an event."""

    id: int
    at: int
    kind: ActivityKind
    agent: str | None
    """The event's agent."""
    who: str
    text: str
    bookkeeping: bool = False
    """Whether it is shown only on request."""

    @property
    def own(self) -> bool:
        """Whether it is an answer, a post or a problem of its agent."""
        return self.kind in OWN_KINDS and self.who == f"@{self.agent}"


OWN_KINDS = frozenset({ActivityKind.SAID, ActivityKind.POSTED, ActivityKind.TROUBLE})

LineParts = tuple[ActivityKind, str, str]
"""The kind, the subject and the text."""


def activity_line(record: EventRecord, details: EventDetails) -> ActivityLine | None:
    """The line of this event; None if live views never show it."""
    parts = _line_parts(record.event, details)
    if parts is None:
        return None
    kind, who, text = parts
    return ActivityLine(
        id=record.id,
        at=record.created_at,
        kind=kind,
        agent=record.agent,
        who=single_line(who),
        text=single_line(text),
        bookkeeping=record.event.bookkeeping,
    )


def is_about(record: EventRecord, team: str | None, members: frozenset[str]) -> bool:
    """Whether the event is about the watched team, or about the whole system."""
    if team is None or record.agent in members or record.data.get("team") == team:
        return True
    return isinstance(record.event, SystemEvent)


def _line_parts(event: Event, details: EventDetails) -> LineParts | None:
    """The event's sentence, or the text of its message, answer or post."""
    match event:
        case MessageEnqueued():
            return _enqueued(event, details)
        case ChainStepDone():
            return _answer(event, details)
        case ResponseReady():
            return _proactive(event, details)
        case RoomPosted():
            return ActivityKind.POSTED, event.who, details.text or ""
        case MessageFailed() if event.wait:
            again = f"{event.sentence()}; retries in {format_duration(event.wait)}"
            return ActivityKind.TROUBLE, event.who, again
        case _ if event.quiet:
            return None
        case _:
            kind = ActivityKind.TROUBLE if event.level.is_trouble else ActivityKind.NOTE
            return kind, event.who, event.sentence()


def _enqueued(event: MessageEnqueued, details: EventDetails) -> LineParts | None:
    origin, agent = details.origin, event.about.agent
    if origin is None or origin.channel == ROOM:
        return None
    if origin.channel == HEARTBEAT:
        return ActivityKind.NOTE, f"heartbeat → @{agent}", "woke up to check its work"
    if origin.from_agent is not None:
        return ActivityKind.HANDOFF, f"@{origin.from_agent} → @{agent}", origin.preview
    return ActivityKind.ASKED, f"{origin.sender or origin.channel} → @{agent}", origin.preview


def _answer(event: ChainStepDone, details: EventDetails) -> LineParts | None:
    """The text outside the tags: handoffs and room posts have lines of their own."""
    if not details.text:
        return ActivityKind.NOTE, event.who, event.sentence()
    text = text_outside_tags(parse_tags(details.text))
    return (ActivityKind.SAID, event.who, text) if text else None


def _proactive(event: ResponseReady, details: EventDetails) -> LineParts | None:
    """A response without a message; other responses are shown when their run ends."""
    if not (event.about.message_id or "").startswith(PROACTIVE):
        return None
    to = "" if details.to is None else f" → {details.to.sender or details.to.channel}"
    return ActivityKind.SAID, f"{event.who}{to}", details.text or ""
