"""A year of schedules, told twice: by the store, and by a book that is kept beside it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from bullpen.core.clock import MINUTE
from bullpen.core.schedules.model import OverlapPolicy
from bullpen.core.schedules.timing import MissedPolicy, Timing


@dataclass
class Page:
    """What the book knows of one schedule."""

    timing: Timing
    missed: MissedPolicy
    overlap: OverlapPolicy
    known: list[int]
    """Every due time that can matter, found once, from the beginning."""
    due: int | None
    """From which one on none was decided."""
    fired: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    dropped: list[tuple[int, int, int]] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    open: bool = False
    paused: bool = False

    @classmethod
    def begin(cls, timing: Timing, missed: MissedPolicy, overlap: OverlapPolicy, end: int) -> Page:
        """A new schedule."""
        known = []
        for due in timing.due_times_after(timing.anchor):
            known.append(due)
            if due > end:
                break
        return cls(timing, missed, overlap, known, known[0] if known else None)

    def tick(self, now: int) -> None:
        """Decide about what has come, as the policies say."""
        if self.paused or self.due is None or self.due > now:
            return
        first = self.known.index(self.due)
        come = self.known[first : bisect_right(self.known, now)]
        self.due = next(iter(self.known[first + len(come) :]), None)
        late = [due for due in come if due < now - MINUTE]
        prompt = come[len(late) :]
        if self.missed is MissedPolicy.ALL:
            fire = come[-100:]
        elif self.missed is MissedPolicy.ONE and not prompt:
            fire = late[-1:]
        else:
            fire = prompt
        drop = come[: len(come) - len(fire)]
        if drop and drop[0] not in self.seen:
            self.dropped.append((drop[0], drop[-1], len(drop)))
            self.seen.add(drop[0])
        self._fire(fire)

    def _fire(self, fire: Sequence[int]) -> None:
        any_fired = False
        for due in fire:
            if due in self.seen:
                continue
            self.seen.add(due)
            together = self.missed is MissedPolicy.ALL and any_fired
            if self.overlap is OverlapPolicy.SKIP and self.open and not together:
                self.skipped.append(due)
            else:
                self.fired.append(due)
                self.open = any_fired = True

    def resume(self, now: int) -> None:
        """What came while it was paused was not missed."""
        self.paused = False
        self.due = next((due for due in self.known if due > now), None)


def first(timing: Timing, count: int) -> list[int]:
    """Its first due times."""
    return list(islice(timing.due_times_after(timing.anchor), count))
