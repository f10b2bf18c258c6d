"""How long something lasts, in one number and one unit."""

from __future__ import annotations

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND

SPAN_UNITS = ((2 * DAY, DAY, "d"), (2 * HOUR, HOUR, "h"), (2 * MINUTE, MINUTE, "min"))


def format_duration(milliseconds: int) -> str:
    """As `3 h`: the largest unit of which there are two or more."""
    for least, unit, name in SPAN_UNITS:
        if milliseconds >= least:
            return f"{milliseconds // unit} {name}"
    return f"{max(0, milliseconds) // SECOND} s"
