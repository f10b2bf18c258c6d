"""Events are found by what they have in common, page by page."""

from __future__ import annotations

import pytest

from bullpen.core.errors import BadText
from bullpen.core.events.append import append_event
from bullpen.core.events.base import Event, MessageRef, UnknownEvent
from bullpen.core.events.conversation import MessageEnqueued, MessageReceived
from bullpen.core.events.log import EventFilter, list_events
from bullpen.core.events.message import MessageDead
from bullpen.core.events.system import ProcessorStart
from bullpen.core.events.tail import EventTail
from bullpen.core.store.base import Store

ANY = EventFilter()


def happen(
    store: Store, kind: type[Event], agent: str | None, message_id: str | None = None
) -> None:
    """Let something happen."""
    about = MessageRef(agent, message_id, message_id)
    with store.write() as tx:
        append_event(tx, UnknownEvent(kind.type, {}, about))


@pytest.fixture(autouse=True)
def _past(store: Store) -> None:
    happen(store, MessageEnqueued, "a", "one")
    happen(store, MessageReceived, "a", "one")
    happen(store, MessageEnqueued, "ab", "two")
    happen(store, ProcessorStart, None)
    happen(store, MessageDead, "b", "two")


def found(
    store: Store,
    wanted: EventFilter = ANY,
    since: int | None = 0,
    upto: int | None = None,
    limit: int = 100,
) -> list[tuple[str, str | None]]:
    """The type and agent of each."""
    newest = EventTail.from_now(store).position
    with store.read() as tx:
        events = list_events(tx, wanted, since, newest if upto is None else upto, limit)
    return [(event.type, event.agent) for event in events]


ALL = [
    ("message_enqueued", "a"),
    ("message_received", "a"),
    ("message_enqueued", "ab"),
    ("processor_start", None),
    ("message_dead", "b"),
]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ANY, [0, 1, 2, 3, 4]),
        (EventFilter(types=frozenset({"message_enqueued"})), [0, 2]),
        (EventFilter(types=frozenset({"message_enqueued", "message_dead", "x"})), [0, 2, 4]),
        (EventFilter(types=frozenset({"message"})), []),
        (EventFilter(types=frozenset()), []),
        (EventFilter(agents=frozenset({"a", "b"})), [0, 1, 4]),
        (EventFilter(agents=frozenset()), []),
        (EventFilter(conversation_id="two"), [2, 4]),
        (EventFilter(message_id="one", types=frozenset({"message_received"})), [1]),
    ],
)
def test_what_has_it_in_common_is_found(
    store: Store, wanted: EventFilter, expected: list[int]
) -> None:
    assert found(store, wanted) == [ALL[each] for each in expected]
    assert found(store, wanted, since=None) == [ALL[each] for each in reversed(expected)]


def test_a_page_goes_on_after_the_last_and_never_beyond_what_is_safe(store: Store) -> None:
    assert found(store, limit=2) == ALL[:2]
    assert found(store, since=2, limit=2) == ALL[2:4]
    assert found(store, since=2, upto=3) == ALL[2:3]
    assert found(store, since=None, upto=3, limit=2) == [ALL[2], ALL[1]]
    assert found(store, since=5) == []


def test_what_no_text_can_be_is_refused(store: Store) -> None:
    with pytest.raises(BadText):
        found(store, EventFilter(conversation_id="a\0"))
    with pytest.raises(BadText):
        found(store, EventFilter(types=frozenset({"\ud800"})))
