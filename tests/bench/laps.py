"""A lap: enqueue messages, claim them, finish them, each in a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from time import perf_counter
from typing import TypeVar

from bullpen.core.message import Answer, NewMessage, Outcome
from bullpen.core.queue.claim import claim
from bullpen.core.queue.enqueue import enqueue, enqueue_many
from bullpen.core.queue.finish import finish
from bullpen.core.store.base import Store
from tests.bench.peers import PAYLOAD

WORKER = "bench"
SENDER = "bench"
PHASES = ("enqueue", "claim", "finish")

Mark = TypeVar("Mark", int, float)
Lap = tuple[float, ...]
"""The seconds of one lap, phase by phase where the contender has phases."""


def message(agent: str, text: str = PAYLOAD) -> NewMessage:
    """What everybody writes; all of them may be answered together."""
    return NewMessage(agent=agent, message=text, channel="api", sender=SENDER, sender_id=SENDER)


class Bullpen:
    """Bullpen as a contender."""

    name = "bullpen"

    def __init__(self, store: Store, agent: str = "agent0") -> None:
        self._store = store
        self._agent = agent

    def marks(self, size: int, mark: Callable[[], Mark]) -> list[Mark]:
        """Go one lap; what `mark` says before, between and after its phases."""
        store, agent = self._store, self._agent
        marks = [mark()]
        with store.write() as tx:
            if size == 1:
                enqueue(tx, message(agent))
            else:
                enqueue_many(tx, [message(agent) for _ in range(size)])
        marks.append(mark())
        with store.write(durable=False) as tx:
            claimed = claim(tx, WORKER, limit=size)
        marks.append(mark())
        assert claimed is not None
        assert len(claimed.messages) == size
        with store.write() as tx:
            finish(tx, claimed, Outcome(answers=(Answer(message=PAYLOAD),)))
        marks.append(mark())
        self._agent = claimed.agent  # the next goes where this one came from: no lane runs dry
        return marks

    def laps(self, count: int, size: int) -> list[Lap]:
        """Go so many laps with so many messages each."""
        return [seconds(self.marks(size, perf_counter)) for _ in range(count)]

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def seconds(marks: list[float]) -> Lap:
    """What passed between the marks."""
    return tuple(after - before for before, after in pairwise(marks))
