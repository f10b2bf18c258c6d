"""What is to be done about the due times that have come: a pure function of policy and time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice, takewhile
from typing import assert_never

from bullpen.core.clock import DAY, MINUTE
from bullpen.core.schedules.timing import Timing

GRACE_MS = MINUTE
"""What is not later than this was not missed."""

MAX_CATCH_UP = 100
"""So many missed due times are made up for at the most, the newest."""

MAX_COUNTED = 10_000
"""So many are counted one by one; after a longer absence nobody asks for the exact number."""


class MissedPolicy(StrEnum):
    """What becomes of due times at which nobody was there."""

    SKIP = "skip"
    ONE = "one"
    """One run stands for all of them."""
    ALL = "all"


@dataclass(frozen=True, slots=True)
class MissedTimes:
    """Due times that are passed over."""

    first: int
    last: int
    times: int
    more: bool = False
    """Whether there were more than were counted."""


@dataclass(frozen=True, slots=True)
class FirePlan:
    """Which due times fire, which are dropped, and what is due next."""

    fire: tuple[int, ...]
    dropped: MissedTimes | None
    next: int | None


def plan_fire(timing: Timing, due_at: int, now: int, missed: MissedPolicy) -> FirePlan:
    """Decide about everything from `due_at`, a due time that has come, up to now."""
    newest = _newest_due_times(timing, due_at, now)
    match missed:
        case MissedPolicy.SKIP:
            fire = [due for due in newest if due >= now - GRACE_MS]
        case MissedPolicy.ONE:
            fire = [due for due in newest if due >= now - GRACE_MS] or newest[-1:]
        case MissedPolicy.ALL:
            fire = newest
        case _:
            assert_never(missed)
    return FirePlan(tuple(fire), _missed_times(timing, due_at, now, fire), timing.after(now))


def _due_times_upto(timing: Timing, due_at: int, now: int) -> takewhile[int]:
    """This due time and those after it, up to now."""
    return takewhile(lambda due: due <= now, chain((due_at,), timing.due_times_after(due_at)))


def _newest_due_times(timing: Timing, due_at: int, now: int) -> list[int]:
    """The newest of them: looked for further and further back, not from the first on."""
    back = DAY
    while True:
        start = timing.after(now - back) if now - back > due_at else due_at
        found = [] if start is None else list(_due_times_upto(timing, start, now))
        if start == due_at or len(found) >= MAX_CATCH_UP:
            return found[-MAX_CATCH_UP:]
        back *= 8


def _missed_times(timing: Timing, due_at: int, now: int, fire: list[int]) -> MissedTimes | None:
    end = fire[0] - 1 if fire else now
    counted = list(islice(_due_times_upto(timing, due_at, end), MAX_COUNTED + 1))
    if not counted:
        return None
    more = len(counted) > MAX_COUNTED
    last = _newest_due_times(timing, due_at, end)[-1] if more else counted[-1]
    return MissedTimes(counted[0], last, min(len(counted), MAX_COUNTED), more)
