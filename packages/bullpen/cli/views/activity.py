"""Events as lines for a person; most events have none."""

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
"""The prefix of the ids of responses that answer no message."""


class ActivityKind(StrEnum):
    """The kind of a line, which gives it its colour."""

    ASKED = "asked"
    HANDOFF = "handoff"
    SAID = "said"
    POSTED = "posted"
    TROUBLE = "trouble"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class ActivityLine:
    """One event for a person."""

    id: int
    at: int
    kind: ActivityKind
    agent: str | None
    """The agent that it is about."""
    who: str
    text: str


LineParts = tuple[ActivityKind, str, str]
"""The kind, who it happened to, and the text."""


def activity_line(record: EventRecord, details: EventDetails) -> ActivityLine | None:
    """The line of this event, if it has one."""
    parts = _line_parts(record.event, details)
    if parts is None:
        return None
    kind, who, text = parts
    return ActivityLine(
        record.id, record.created_at, kind, record.agent, single_line(who), single_line(text)
    )


def is_about(record: EventRecord, team: str | None, members: frozenset[str]) -> bool:
    """Whether the event is about the watched team, or about all."""
    if team is None or record.agent in members or record.data.get("team") == team:
        return True
    return isinstance(record.event, SystemEvent)


def _line_parts(event: Event, details: EventDetails) -> LineParts | None:
    """The event's own sentence; an event that is about a text is shown with the text."""
    match event:
        case MessageEnqueued():
            return _enqueued(event, details)
        case ChainStepDone():
            # The texts that it handed on have lines of their own.
            text = text_outside_tags(parse_tags(details.text or ""))
            return ActivityKind.SAID, event.who, text or event.sentence()
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
        return ActivityKind.NOTE, f"heartbeat → @{agent}", "is asked to check its work"
    if origin.from_agent is not None:
        return ActivityKind.HANDOFF, f"@{origin.from_agent} → @{agent}", origin.preview
    return ActivityKind.ASKED, f"{origin.sender or origin.channel} → @{agent}", origin.preview


def _proactive(event: ResponseReady, details: EventDetails) -> LineParts | None:
    """A response that answers no message; one that does is shown when its run ends."""
    if not (event.about.message_id or "").startswith(PROACTIVE):
        return None
    to = "" if details.to is None else f" → {details.to.sender or details.to.channel}"
    return ActivityKind.SAID, f"{event.who}{to}", details.text or ""
