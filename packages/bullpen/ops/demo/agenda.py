"""The agenda of a simulation: what happens next, and at which time."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeVar

Subject = TypeVar("Subject")

_Entry = tuple[int, int, Callable[[object], None], object]


class Agenda:
    """Actions by time; those of one moment happen in the order in which they were planned."""

    def __init__(self, begin: int, end: int) -> None:
        self.now = begin
        self.end = end
        self._entries: list[_Entry] = []
        self._planned = 0

    def plan(self, time: int, action: Callable[[Subject], None], subject: Subject) -> None:
        """Do something at a time; from the end on nothing happens."""
        if time < self.end:
            self._planned += 1
            entry = (time, self._planned, action, subject)
            heappush(self._entries, entry)  # type: ignore[misc]  # action and subject fit

    def run_until(self, time: int) -> None:
        """Do everything that is planned before a time, which is then the present."""
        entries = self._entries
        while entries and entries[0][0] < time:
            moment, _, action, subject = heappop(entries)
            self.now = moment
            action(subject)
        self.now = time
