"""When a schedule is due, in words."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import assert_never

from cronsim import CronSim

from bullpen.core.schedules.timing import Kind, Timing
from bullpen.core.schedules.when import lasting, written


def meaning(timing: Timing) -> str:
    """What it says, as a person would."""
    match timing.kind:
        case Kind.CRON:
            assert timing.cron is not None
            return _explained(timing.cron)
        case Kind.EVERY:
            assert timing.every is not None
            return f"Every {lasting(timing.every)}"
        case Kind.ONCE:
            assert timing.at is not None
            return f"Once, at {written(timing.at, timing.zone)}"
        case _:
            assert_never(timing.kind)


@lru_cache(maxsize=10_000)
def _explained(cron: str) -> str:
    return CronSim(cron, datetime.now(UTC)).explain()
