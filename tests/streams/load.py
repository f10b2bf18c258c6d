"""Work at a steady rate, when each event of it was committed, and who heard of it when."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bullpen.core.events.log import MAX_EVENT_ID
from bullpen.core.message import Answer, NewMessage, Outcome
from bullpen.core.queue.claim import claim
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.finish import finish
from bullpen.core.store.base import Store
from tests.streams.crowd import Heard

QUESTION = "What became of the order of last Tuesday? " * 4
ANSWER = Outcome(answers=(Answer(message="It was delivered, and paid for on Thursday. " * 6),))


@dataclass(frozen=True)
class Work:
    """What was done."""

    committed: dict[int, int]
    """When each event was committed, by its id."""
    seconds: float

    @property
    def last(self) -> int:
        """The last event's id."""
        return max(self.committed)

    @property
    def rate(self) -> float:
        """Events a second."""
        return len(self.committed) / self.seconds

    def complete(self, heard: Sequence[Heard]) -> bool:
        """Whether every one heard every event once and in order."""
        expected = list(self.committed)
        return all(list(each.ids) == expected for each in heard)

    def milliseconds(self, heard: Sequence[Heard]) -> list[float]:
        """From each commit's return to each one's having the event."""
        return [
            (moment - self.committed[number]) / 1e6
            for each in heard
            for number, moment in zip(each.ids, each.times, strict=True)
        ]


def work(store: Store, agent: str, *, seconds: float, rate: float) -> Work:
    """Ask, claim and answer, one after the other, so that so many events a second happen."""
    committed: dict[int, int] = {}
    last = _last(store)
    began = time.monotonic()

    def note() -> None:
        nonlocal last
        now = time.monotonic_ns()
        newest = _last(store)
        committed.update((number, now) for number in range(last + 1, newest + 1))
        last = newest

    while (passed := time.monotonic() - began) < seconds:
        time.sleep(max(0.0, len(committed) / rate - passed))
        with store.write() as tx:
            enqueue(tx, NewMessage(agent=agent, message=QUESTION, channel="web", sender="Ada"))
        note()
        with store.write(durable=False) as tx:
            claimed = claim(tx, "load", agent=agent)
        assert claimed is not None
        note()
        with store.write() as tx:
            finish(tx, claimed, ANSWER)
        note()
    return Work(committed, time.monotonic() - began)


def _last(store: Store) -> int:
    with store.read() as tx:
        row = tx.one(MAX_EVENT_ID, {})
    return 0 if row is None or row[0] is None else row[0]
