"""The engine of a simulation: its time, what happens next, its random numbers and its ids."""

from __future__ import annotations

import string
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import TypeVar

from bullpen.core.clock import SECOND
from bullpen.core.ids import ID_CHARS
from bullpen.core.retry import RetryPolicy
from bullpen.ops.demo.plan import HistoryPlan

Subject = TypeVar("Subject")

_Entry = tuple[int, int, Callable[[object], None], object]

ALPHABET = string.digits + string.ascii_lowercase
_RANGE = len(ALPHABET) ** ID_CHARS
_TRIPLE = len(ALPHABET) ** 3
_STEP = 1_743_392_200_199
"""Without a common factor with the range, so that an id returns only after all others."""


class Engine:
    """What all parts of a simulation share; it calls their actions in the order of time."""

    def __init__(self, plan: HistoryPlan, random: Random) -> None:
        self.plan = plan
        self.random = random
        self.ids = IdSequence(random)
        self.retry = RetryPolicy(
            base=plan.retry_base_seconds * SECOND,
            longest=plan.retry_max_seconds * SECOND,
            random=random.random,
        )
        self.now = plan.since
        self.end = plan.until
        self._entries: list[_Entry] = []
        self._planned = 0

    def call_at(self, time: int, action: Callable[[Subject], None], subject: Subject) -> None:
        """Call an action at a time, after those planned before for the same time.

        From the end of the history on, nothing is called.
        """
        if time < self.end:
            self._planned += 1
            entry = (time, self._planned, action, subject)
            heappush(self._entries, entry)  # type: ignore[misc]  # action and subject fit

    def run_until(self, time: int) -> None:
        """Call everything that is planned before a time, which is then the present."""
        entries = self._entries
        while entries and entries[0][0] < time:
            moment, _, action, subject = heappop(entries)
            self.now = moment
            action(subject)
        self.now = time


class IdSequence:
    """Gives ids in the form of real ones, each once, in an order that the seed decides."""

    def __init__(self, random: Random) -> None:
        self._place = random.randrange(_RANGE)
        pairs = [first + second for first in ALPHABET for second in ALPHABET]
        self._pairs = pairs
        self._triples = [pair + last for pair in pairs for last in ALPHABET]

    def new(self, prefix: str) -> str:
        """A new id, such as `slack_a1b2c3d4`."""
        place = self._place = (self._place + _STEP) % _RANGE
        rest, low = divmod(place, _TRIPLE)
        high, middle = divmod(rest, _TRIPLE)
        return f"{prefix}_{self._triples[low]}{self._triples[middle]}{self._pairs[high]}"
