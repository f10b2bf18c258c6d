"""Midnight: where today began, also on the days on which the clocks are changed at midnight."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from bullpen.core.clock import SECOND, start_of_day


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("zone", "moment", "today", "tomorrow"),
    [
        ("UTC", "2026-03-01T00:00Z", "2026-03-01T00:00Z", "2026-03-02T00:00Z"),
        (
            "Europe/Berlin",
            "2026-10-25T12:00+01:00",
            "2026-10-25T00:00+02:00",
            "2026-10-26T00:00+01:00",
        ),
        (
            "Europe/Berlin",
            "2026-03-29T12:00+02:00",
            "2026-03-29T00:00+01:00",
            "2026-03-30T00:00+02:00",
        ),
        # In Havana the hour after midnight comes twice: the day began with the first.
        (
            "America/Havana",
            "2026-11-01T00:30-05:00",
            "2026-11-01T00:00-04:00",
            "2026-11-02T00:00-05:00",
        ),
    ],
)
def test_today_and_tomorrow_begin_at_midnight(
    zone: str, moment: str, today: str, tomorrow: str
) -> None:
    here = ZoneInfo(zone)
    assert start_of_day(ms(moment), here) == ms(today)
    assert start_of_day(ms(moment), here, 1) == ms(tomorrow)
