"""Values of reports as people and as JSON readers get them."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.reports.schema import Column, Unit

Value = str | int | float | bool | date | None
"""What a cell of a report contains."""

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

JsonValue = str | int | float | bool | None

_STEPS = ((DAY, "d", HOUR, "h"), (HOUR, "h", MINUTE, "min"), (MINUTE, "min", SECOND, "s"))


def format_duration(milliseconds: float) -> str:
    """A duration in its two largest units: `850 ms`, `12.3 s`, `4 min 12 s`, `2 d 4 h`."""
    rest = max(0, round(milliseconds))
    for unit, name, smaller, smaller_name in _STEPS:
        if rest >= unit:
            count, left = divmod(rest, unit)
            return f"{count} {name} {left // smaller} {smaller_name}"
    return f"{rest / SECOND:.1f} s" if rest >= SECOND else f"{rest} ms"


def format_number(number: float) -> str:
    """A number with its thousands separated, and decimals only below 100."""
    if isinstance(number, int) or abs(number) >= 100 or number == round(number):
        return f"{round(number):,}"
    return f"{number:.2f}"


def format_dollars(amount: float) -> str:
    """An amount of dollars; below one cent with the digits that matter."""
    return f"${amount:,.2f}" if abs(amount) >= 0.01 or amount == 0 else f"${amount:.2g}"


def format_value(column: Column, value: Value, zone: ZoneInfo) -> str:
    """A value in the unit of its column, as a person reads it; nothing for NULL and NaN."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, date | str):
        return str(value)
    match column.unit:
        case Unit.MILLISECONDS:
            return format_duration(value)
        case Unit.TIME:
            return f"{datetime.fromtimestamp(value / SECOND, UTC).astimezone(zone):%Y-%m-%d %H:%M}"
        case Unit.DOLLARS:
            return format_dollars(value)
        case Unit.MICRO_DOLLARS:
            return format_dollars(value / 1_000_000)
        case Unit.SHARE:
            return f"{value * 100:.1f} %"
        case Unit.WEEKDAY:
            return WEEKDAYS[round(value) - 1]
        case _:
            return format_number(value)


def to_json(value: Value) -> JsonValue:
    """A value for JSON: days as `2026-11-20`; infinite numbers, which JSON lacks, as null."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
