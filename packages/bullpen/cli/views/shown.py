"""Texts, times and numbers as a view shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from bullpen.cli.visible import sanitize
from bullpen.core.clock import SECOND

TAB = 4
COUNT_UNITS = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))


def sanitize_text(text: str) -> str:
    """The text without what would move the cursor, or do worse to a terminal."""
    return sanitize(text).expandtabs(TAB)


def single_line(text: str) -> str:
    """The text as one line."""
    return " ".join(sanitize_text(text).split())


def last_line(text: str) -> str:
    """The last line that says something."""
    lines = [each.strip() for each in sanitize_text(text).splitlines() if each.strip()]
    return lines[-1] if lines else ""


def format_count(count: int) -> str:
    """A number in four characters or five."""
    for least, unit in COUNT_UNITS:
        if count >= least:
            few = count < 10 * least
            return f"{count / least:.1f}{unit}" if few else f"{count // least}{unit}"
    return str(count)


def format_money(dollars: float) -> str:
    """An amount; what is less than a cent is not nothing."""
    if 0 < dollars < 0.01:
        return "<$0.01"
    return f"${dollars:,.2f}"


def format_clock(moment: int, zone: ZoneInfo) -> str:
    """The time of day."""
    return f"{datetime.fromtimestamp(moment / SECOND, UTC).astimezone(zone):%H:%M:%S}"


def format_moment(moment: int, now: int, zone: ZoneInfo) -> str:
    """The time of day; of another day, with its date."""
    at, today = (
        datetime.fromtimestamp(each / SECOND, UTC).astimezone(zone) for each in (moment, now)
    )
    if at.date() == today.date():
        return f"{at:%H:%M}"
    return f"{at:%m-%d %H:%M}" if at.year == today.year else f"{at:%Y-%m-%d %H:%M}"
