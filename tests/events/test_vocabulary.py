"""Every event has a class, documentation and a sentence, and reads back as it was written."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

from bullpen.core import events
from bullpen.core.events.append import INSERTS_WITH_ROW_ID
from bullpen.core.events.base import (
    FIELD_TYPES,
    Event,
    MessageRef,
    UnknownEvent,
)
from bullpen.core.events.company import AgentAdded, AgentChanged, LanePaused
from bullpen.core.events.conversation import TeamChainEnd
from bullpen.core.events.message import MessageDead, MessageFailed, MessageHeld
from bullpen.core.events.system import ProcessorStart
from bullpen.core.events.vocabulary import EVENT_TYPES, read_event

ABOUT = MessageRef("coder", "api_1", "api_2")
EXAMPLES = {"None": None, "str": "x", "str | None": None, "int": 7, "int | None": None}


def example(event: type[Event]) -> Event:
    """An event of this class, as a row is read."""
    data = {each.name: EXAMPLES.get(each.annotation, ["a", "b"]) for each in event.fields}
    found = event.read(ABOUT, data)
    assert found is not None, event
    return found


def _subclasses(event: type[Event]) -> Iterator[type[Event]]:
    for each in event.__subclasses__():
        yield each
        yield from _subclasses(each)


def test_every_class_with_a_type_is_in_the_vocabulary() -> None:
    for module in pkgutil.iter_modules(events.__path__):
        importlib.import_module(f"{events.__name__}.{module.name}")
    declared = {each for each in _subclasses(Event) if isinstance(vars(each).get("type"), str)}
    assert declared == set(EVENT_TYPES.values())


def test_every_event_is_documented_and_has_a_sentence_of_its_own() -> None:
    for name, event in EVENT_TYPES.items():
        documented = event.__doc__ or ""
        assert vars(event).get("__doc__"), name
        assert documented == documented.strip().rstrip(".") != "", name
        assert "\n" not in documented, name
        sentence = example(event).sentence()
        assert sentence, name
        assert sentence != name.replace("_", " "), f"{name} has no sentence"
        assert documented[0].isupper(), name


def test_a_subject_and_a_sentence_tell_what_happened_without_the_row() -> None:
    for name, event in EVENT_TYPES.items():
        found = example(event)
        told = f"{found.who} {found.sentence()}"
        assert "{" not in told, name
        assert "None" not in told, name
    failed = MessageFailed(ABOUT, kind="crash", error="claude is not installed", wait=0)
    assert f"{failed.who} {failed.sentence()}" == (
        "@coder failed to answer api_2: claude is not installed"
    )
    paused = LanePaused(agent="coder", reason="claude is not installed")
    assert f"{paused.who} {paused.sentence()}" == "@coder was paused: claude is not installed"
    failing = LanePaused(agent="coder", reason="setup: claude is not installed")
    assert failing.sentence() == "was paused: claude is not installed"
    changed = AgentChanged(agent="coder", changed=["model", "provider"])
    assert f"{changed.who} {changed.sentence()}" == "@coder was changed (model, provider)"
    over = TeamChainEnd(ABOUT, team=None)
    assert f"{over.who} {over.sentence()}" == "@coder finished a conversation"


def test_every_type_is_a_name_that_json_sse_and_a_table_of_the_documentation_can_carry() -> None:
    for name in EVENT_TYPES:
        assert name.isascii(), name
        assert name == name.lower(), name
        assert name.replace("_", "").isalpha(), name


def test_no_field_hides_what_every_event_has() -> None:
    for name, event in EVENT_TYPES.items():
        for field in event.fields:
            assert field.annotation in FIELD_TYPES, f"{name}.{field.name}: {field.annotation}"
            assert not hasattr(Event, field.name), f"{name}.{field.name}"
        assert len({field.name for field in event.fields}) == len(event.fields), name


def test_every_field_that_the_database_fills_in_has_a_statement() -> None:
    written = {event.written_field for event in EVENT_TYPES.values()} - {None}
    assert written == set(INSERTS_WITH_ROW_ID)


def test_an_event_is_read_as_it_was_made() -> None:
    made = MessageFailed(ABOUT, kind="crash", error="it broke", wait=5)
    read = read_event(made.type, ABOUT, made.data)
    assert isinstance(read, MessageFailed)
    assert (read.kind, read.error, read.wait, read.about) == ("crash", "it broke", 5, ABOUT)
    assert read.data == {"kind": "crash", "error": "it broke", "wait": 5}
    paused = read_event("lane_paused", ABOUT, {"reason": None})
    assert isinstance(paused, LanePaused)
    assert (paused.agent, paused.reason) == ("coder", None)


def test_what_is_not_given_is_no_key_of_the_data() -> None:
    assert MessageHeld(ABOUT, reason="by hand").data == {"reason": "by hand"}
    assert MessageHeld(ABOUT).kind is None
    assert AgentAdded(agent="coder").data == {}
    assert LanePaused(agent="coder", reason=None).data == {"reason": None}


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        ("something_new", {"level": "high", "says": "hello", "who": "me", "type": "x"}),
        ("message_failed", {}),
        ("message_failed", {"kind": "crash", "error": "it broke", "wait": "soon"}),
        ("message_received", {"messages": "api_1", "worker": "w"}),
    ],
)
def test_an_event_of_another_version_is_unknown_and_still_shown(
    type_: str, data: dict[str, object]
) -> None:
    found = read_event(type_, ABOUT, data)
    assert isinstance(found, UnknownEvent)
    assert (found.type, found.data, found.who) == (type_, data, "@coder")
    assert found.sentence().startswith(type_.replace("_", " "))
    assert not found.level.is_trouble


def test_what_another_version_says_besides_is_left_out() -> None:
    found = read_event(MessageDead.type, ABOUT, {"kind": "x", "error": "y", "level": "high"})
    assert isinstance(found, MessageDead)
    assert found.data == {"kind": "x", "error": "y"}
    assert found.level.is_trouble


def test_an_event_of_an_agent_whose_row_names_none_is_unknown() -> None:
    nobody = MessageRef(None, None, None)
    assert isinstance(read_event("agent_added", nobody, {}), UnknownEvent)
    assert isinstance(read_event("processor_start", nobody, {"worker": "w"}), ProcessorStart)
