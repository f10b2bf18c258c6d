"""What happened, as a line for a person; most events are too small for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from bullpen.cli.output import format_duration
from bullpen.cli.views.app import single_line
from bullpen.core.events.log import EventType
from bullpen.core.events.tail import Event
from bullpen.core.inspect.event_details import EventDetails
from bullpen.core.message import HEARTBEAT, ROOM
from bullpen.core.routing.tags import parse_tags, text_outside_tags

PROACTIVE = "proactive_"
"""How the ids of answers begin that answer nothing."""


class ActivityKind(StrEnum):
    """What sort of thing it is, which gives it its colour."""

    ASKED = "asked"
    HANDOFF = "handoff"
    SAID = "said"
    POSTED = "posted"
    TROUBLE = "trouble"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class ActivityLine:
    """One thing that happened."""

    id: int
    at: int
    kind: ActivityKind
    agent: str | None
    """Whom it is about."""
    who: str
    text: str


LineParts = tuple[ActivityKind, str, str]
"""The kind, who, and the text."""


def activity_line(event: Event, facts: EventDetails) -> ActivityLine | None:
    """The line of this event, if it is worth one."""
    found = LINE_BUILDERS.get(event.type)
    told = None if found is None else found(event, facts)
    if told is None:
        return None
    kind, who, text = told
    return ActivityLine(
        event.id, event.created_at, kind, event.agent, single_line(who), single_line(text)
    )


def concerns(event: Event, team: str | None, members: frozenset[str]) -> bool:
    """Whether it belongs to what is watched: a team, or everything."""
    if team is None or event.agent in members or event.data.get("team") == team:
        return True
    return event.agent is None and "team" not in event.data and event.type in PROCESSES


def _asked(event: Event, facts: EventDetails) -> LineParts | None:
    origin = facts.origin
    if origin is None or origin.channel == ROOM:
        return None
    if origin.channel == HEARTBEAT:
        return ActivityKind.NOTE, f"heartbeat → {event.agent}", "is asked to look after its work"
    kind = ActivityKind.ASKED if origin.from_agent is None else ActivityKind.HANDOFF
    who = origin.from_agent or origin.sender or origin.channel
    return kind, f"{who} → {event.agent}", origin.preview


def _begins(event: Event, _: EventDetails) -> LineParts:
    messages = event.data.get("messages")
    many = len(messages) if isinstance(messages, list) else 1
    what = f", for {many} messages at once" if many > 1 else ""
    return ActivityKind.NOTE, str(event.agent), f"begins{what}"


def _said(event: Event, facts: EventDetails) -> LineParts:
    # What it told others stands in lines of its own.
    return (
        ActivityKind.SAID,
        str(event.agent),
        text_outside_tags(parse_tags(facts.text or "")) or "is done",
    )


def _unasked(event: Event, facts: EventDetails) -> LineParts | None:
    if not (event.message_id or "").startswith(PROACTIVE):
        return None
    to = "" if facts.to is None else f" → {facts.to.sender or facts.to.channel}"
    return ActivityKind.SAID, f"{event.agent or 'bullpen'}{to}", facts.text or ""


def _failed(event: Event, _: EventDetails) -> LineParts:
    wait = event.data.get("wait")
    again = f"; tries again in {format_duration(wait)}" if isinstance(wait, int) and wait else ""
    return ActivityKind.TROUBLE, str(event.agent), f"failed: {_why(event)}{again}"


def _posted(event: Event, facts: EventDetails) -> LineParts:
    return (
        ActivityKind.POSTED,
        f"#{event.data.get('team')} {event.data.get('author')}",
        facts.text or "",
    )


def _through(event: Event, _: EventDetails) -> LineParts:
    return ActivityKind.NOTE, f"#{event.data.get('team')}", "is through with it"


def _many_died(event: Event, _: EventDetails) -> LineParts:
    return ActivityKind.TROUBLE, "queue", f"many messages die{_because(event)}"


def _trouble(words: str) -> Callable[[Event, EventDetails], LineParts]:
    return lambda event, _: (ActivityKind.TROUBLE, _subject(event), f"{words}{_because(event)}")


def _note(words: str) -> Callable[[Event, EventDetails], LineParts]:
    return lambda event, _: (ActivityKind.NOTE, _subject(event), f"{words}{_because(event)}")


def _process(name: str, words: str) -> Callable[[Event, EventDetails], LineParts]:
    return lambda event, _: (ActivityKind.NOTE, name, words)


def _subject(event: Event) -> str:
    if event.agent is not None:
        return event.agent
    for name, mark in (("team", "#"), ("kind", ""), ("name", "")):
        if isinstance(event.data.get(name), str):
            return f"{mark}{event.data[name]}"
    return "bullpen"


def _because(event: Event) -> str:
    why = _why(event)
    return f": {why}" if why else ""


def _why(event: Event) -> str:
    return str(event.data.get("reason") or event.data.get("error") or "")


LINE_BUILDERS: Mapping[str, Callable[[Event, EventDetails], LineParts | None]] = {
    EventType.MESSAGE_ENQUEUED: _asked,
    EventType.CHAIN_STEP_START: _begins,
    EventType.CHAIN_STEP_DONE: _said,
    EventType.RESPONSE_READY: _unasked,
    EventType.ROOM_POSTED: _posted,
    EventType.MESSAGE_FAILED: _failed,
    EventType.MESSAGE_DEAD: _trouble("gave up"),
    EventType.MESSAGE_HELD: _trouble("waits for a person"),
    EventType.MESSAGE_EXPIRED: _trouble("was too late with a message"),
    EventType.MESSAGE_CANCELLED: _note("a message was cancelled"),
    EventType.MESSAGE_DROPPED: _note("a message was dropped"),
    EventType.MESSAGE_RETRIED: _note("a message is tried again"),
    EventType.MESSAGE_LET_GO: _note("a held message goes on"),
    EventType.MESSAGE_RELEASED: _note("gave its work back to the queue"),
    EventType.FILE_REFUSED: _trouble("may not send a file"),
    EventType.SESSION_LOST: _trouble("lost its session"),
    EventType.SESSION_RESET: _note("forgot its sessions"),
    EventType.RESPONSE_DEAD: _trouble("an answer did not arrive"),
    EventType.RESPONSE_UNKNOWN: _trouble("nobody knows whether an answer arrived"),
    EventType.LANE_PAUSED: _trouble("is paused"),
    EventType.LANE_RESUMED: _note("works again"),
    EventType.LANE_DRAINING: _note("takes nothing new"),
    EventType.LANE_ARCHIVED: _note("has left"),
    EventType.AGENT_ADDED: _note("is new"),
    EventType.AGENT_CHANGED: _note("was changed"),
    EventType.TEAM_ADDED: _note("is a new team"),
    EventType.TEAM_CHANGED: _note("was changed"),
    EventType.TEAM_REMOVED: _note("was disbanded"),
    EventType.TEAM_CHAIN_END: _through,
    EventType.HEARTBEAT_SILENT: _note("had nothing to say"),
    EventType.HEARTBEAT_PAUSED: _trouble("its heartbeat is paused"),
    EventType.DEAD_LETTERS_GREW: _many_died,
    EventType.SYSTEM_AGENT_FAILED: _trouble("failed"),
    EventType.WORKER_LOST: _trouble("was not heard of any more"),
    EventType.PROCESSOR_START: _process("processor", "starts"),
    EventType.PROCESSOR_STOP: _process("processor", "has stopped"),
    EventType.SCHEDULER_START: _process("scheduler", "starts"),
    EventType.SCHEDULER_STOP: _process("scheduler", "has stopped"),
}

PROCESSES = frozenset(
    {
        *(EventType.PROCESSOR_START, EventType.PROCESSOR_STOP, EventType.SCHEDULER_START),
        *(EventType.SCHEDULER_STOP, EventType.WORKER_LOST, EventType.DEAD_LETTERS_GREW),
        EventType.SYSTEM_AGENT_FAILED,
    }
)
"""What happens to everybody."""
