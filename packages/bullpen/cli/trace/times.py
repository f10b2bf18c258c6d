"""Moments and lengths of time within one conversation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from bullpen.cli.span import format_duration
from bullpen.core.clock import SECOND


@dataclass(frozen=True, slots=True)
class ConversationClock:
    """The owner's clock, and the day on which it began."""

    here: ZoneInfo
    began: int
    now: int

    def at(self, moment: int) -> str:
        """By the clock; with the day, if it is another one."""
        local = self._local(moment)
        today = local.date() == self._local(self.began).date()
        return local.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")

    def day(self) -> str:
        """When it began, in full."""
        return self._local(self.began).strftime("%Y-%m-%d %H:%M:%S %Z")

    def _local(self, moment: int) -> datetime:
        return datetime.fromtimestamp(moment / SECOND, UTC).astimezone(self.here)


def format_elapsed(milliseconds: int) -> str:
    """How long; what is short, with a tenth of a second."""
    if milliseconds < 10 * SECOND:
        return f"{max(0, milliseconds) / SECOND:.1f} s"
    return format_duration(milliseconds)


def format_count(number: int, what: str, many: str = "") -> str:
    """So many of something."""
    return f"{number} {what}" if number == 1 else f"{number} {many or what + 's'}"
