"""Events as lines of the live views."""

from __future__ import annotations

from collections.abc import Mapping

from bullpen.cli.views.activity import ActivityKind, activity_line, is_about
from bullpen.core.events.company import RoomPosted
from bullpen.core.events.conversation import ChainStepDone, MessageEnqueued
from bullpen.core.events.log import EventRecord
from bullpen.core.events.response import ResponseReady
from bullpen.core.events.system import SystemEvent
from bullpen.core.events.vocabulary import EVENT_TYPES
from bullpen.core.inspect.event_details import EventDetails
from tests.events.test_vocabulary import example

NO_DETAILS = EventDetails()
WITH_DETAILS = (MessageEnqueued, ChainStepDone, ResponseReady, RoomPosted)
"""Shown with the text that they are about."""


def record(type_: str, data: Mapping[str, object], agent: str | None = "coder") -> EventRecord:
    """A row of the event log."""
    return EventRecord(1, type_, agent, "api_1", "api_2", dict(data), 0)


def test_every_event_is_quiet_or_shown_with_its_sentence() -> None:
    for name, event in EVENT_TYPES.items():
        if issubclass(event, WITH_DETAILS):
            continue
        row = record(name, example(event).data)
        line = activity_line(row, NO_DETAILS)
        if event.quiet:
            assert line is None, name
            continue
        assert line is not None, name
        assert line.text.startswith(row.event.sentence()), name
        assert line.who == row.event.who, name
        assert (line.kind is ActivityKind.TROUBLE) == event.level.is_trouble, name


def test_a_failed_message_is_shown_with_the_time_until_it_is_tried_again() -> None:
    failure = {"kind": "crash", "error": "it broke"}
    line = activity_line(record("message_failed", {**failure, "wait": 180_000}), NO_DETAILS)
    assert line is not None
    assert line.text == "failed to answer api_2: it broke; retries in 3 min"
    line = activity_line(record("message_failed", {**failure, "wait": 0}), NO_DETAILS)
    assert line is not None
    assert line.text == "failed to answer api_2: it broke"


def test_an_event_of_another_version_is_shown_plainly() -> None:
    line = activity_line(record("agent_promoted", {"reason": "it is good"}), NO_DETAILS)
    assert line is not None
    assert (line.kind, line.who, line.text) == (
        ActivityKind.NOTE,
        "@coder",
        "agent promoted: it is good",
    )


def test_a_view_of_a_team_shows_its_members_its_own_events_and_those_of_the_system() -> None:
    members = frozenset({"coder"})
    assert is_about(record("agent_changed", {"changed": []}), "dev", members)
    assert not is_about(record("agent_changed", {"changed": []}, "tester"), "dev", members)
    assert is_about(record("team_changed", {"team": "dev", "changed": []}, None), "dev", members)
    assert not is_about(
        record("team_changed", {"team": "ops", "changed": []}, None), "dev", members
    )
    for name, event in EVENT_TYPES.items():
        row = record(name, example(event).data, None)
        shown = issubclass(event, SystemEvent) or row.data.get("team") == "dev"
        assert is_about(row, "dev", members) == shown, name
