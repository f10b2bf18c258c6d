"""An Ear calls those whom a hint is for, and everybody when it may have missed one."""

from __future__ import annotations

import queue
import threading

from bullpen.core.background import register_worker
from bullpen.core.store.base import Store
from bullpen.core.wake.listener import ALL_TOPICS, WakeupDispatcher
from tests.wake.listening import SOON, open_lane, send


class Scripted:
    """A listener that hears what the test says, or fails as it says."""

    address: str | None = None

    def __init__(self) -> None:
        self.said: queue.Queue[frozenset[str] | Exception] = queue.Queue()
        self.closed = threading.Event()

    def wait(self, timeout: float) -> frozenset[str]:
        """The next thing said."""
        try:
            said = self.said.get(timeout=min(timeout, SOON))
        except queue.Empty:
            return frozenset()
        if isinstance(said, Exception):
            raise said
        return said

    def interrupt(self) -> None:
        """Say nothing, at once."""
        self.said.put(frozenset())

    def close(self) -> None:
        """Remember that it was closed."""
        assert not self.closed.is_set()
        self.closed.set()


def overheard(*said: frozenset[str] | Exception) -> list[str]:
    """Whom an Ear called, of three, after all of this was said."""
    listener = Scripted()
    called: list[str] = []
    done = threading.Event()
    ear = WakeupDispatcher(listener)
    for topic in ("messages", "responses:slack", "events"):
        ear.subscribe(topic, lambda topic=topic: called.append(topic))  # type: ignore[misc]
    ear.subscribe("done", done.set)
    for each in said:
        listener.said.put(each)
    listener.said.put(frozenset({"done"}))
    ear.start()
    assert done.wait(SOON) or Exception in [type(each) for each in said]
    ear.stop()
    assert listener.closed.is_set()
    return called


def test_only_the_callbacks_of_the_topic_are_called() -> None:
    assert overheard(frozenset({"responses:slack"})) == ["responses:slack"]
    assert overheard(frozenset({"responses:telegram", "message"})) == []
    assert overheard(frozenset({"events", "messages"})) == ["messages", "events"]


def test_anything_calls_everybody() -> None:
    assert overheard(ALL_TOPICS) == ["messages", "responses:slack", "events"]


def test_silence_calls_nobody() -> None:
    assert overheard(frozenset()) == []


def test_a_listener_that_fails_is_asked_again_and_everybody_looks_meanwhile() -> None:
    called = overheard(OSError("gone"), frozenset({"events"}))
    assert called == ["messages", "responses:slack", "events", "events"]


def test_an_ear_that_was_never_started_can_be_stopped() -> None:
    listener = Scripted()
    WakeupDispatcher(listener).stop()
    assert listener.closed.is_set()


def test_an_ear_on_a_real_store_calls_back_and_stops_at_once(store: Store) -> None:
    open_lane(store)
    listener = store.listen()
    with store.write() as tx:
        register_worker(tx, "test", listener.address)
    rung, other = threading.Event(), threading.Event()
    ear = WakeupDispatcher(listener)
    ear.subscribe("messages", rung.set)
    ear.subscribe("responses:slack", other.set)
    ear.start()
    send(store)
    assert rung.wait(SOON)
    assert not other.is_set()
    ear.stop()
