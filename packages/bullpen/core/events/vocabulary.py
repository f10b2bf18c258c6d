"""All events by type, in the order of docs/reference/events.md."""

from __future__ import annotations

from collections.abc import Mapping

from bullpen.core.events import (
    channel,
    company,
    conversation,
    message,
    response,
    schedule,
    system,
)
from bullpen.core.events.base import About, Event, UnknownEvent

_MODULES = (conversation, response, message, company, schedule, channel, system)

EVENT_TYPES: Mapping[str, type[Event]] = {
    each.type: each
    for module in _MODULES
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, Event) and "type" in vars(each)
}


def read_event(type_: str, about: About, data: Mapping[str, object]) -> Event:
    """The event in a row; an `UnknownEvent` if another version of Bullpen wrote it."""
    event_type = EVENT_TYPES.get(type_)
    event = None if event_type is None else event_type.read(about, data)
    return UnknownEvent(type_, data, about) if event is None else event
