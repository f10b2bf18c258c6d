"""When a schedule is due, in words."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import assert_never

from cronsim import CronSim

from bullpen.core.schedules.timing import Timing, TimingKind
from bullpen.core.schedules.when import format_interval, format_time


def describe_timing(timing: Timing) -> str:
    """What it says, as a person would."""
    match timing.kind:
        case TimingKind.CRON:
            assert timing.cron is not None
            return _describe_cron(timing.cron)
        case TimingKind.EVERY:
            assert timing.every is not None
            return f"Every {format_interval(timing.every)}"
        case TimingKind.ONCE:
            assert timing.at is not None
            return f"Once, at {format_time(timing.at, timing.zone)}"
        case _:
            assert_never(timing.kind)


@lru_cache(maxsize=10_000)
def _describe_cron(cron: str) -> str:
    return CronSim(cron, datetime.now(UTC)).explain()
