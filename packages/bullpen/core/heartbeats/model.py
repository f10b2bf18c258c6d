"""A heartbeat: an agent's scheduled wake-up, its limits and its row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from bullpen.core.clock import HOUR, SECOND
from bullpen.core.errors import BadHeartbeat
from bullpen.core.message import ReplyTo
from bullpen.core.models import HEARTBEATS
from bullpen.core.outbox.addresses import DeliveryAddress

SILENT_ANSWER = "HEARTBEAT_OK"
"""An agent's answer when it has nothing to report; it is not delivered."""

MAX_ERRORS = 3
"""A heartbeat is paused after this many failures in a row."""

MINUTES_PER_DAY = 24 * 60
HOURS_HINT = "Use `08:00-18:00`, or `all` for the whole day."

_HOURS_PATTERN = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")

H = HEARTBEATS.c


class HeartbeatState(StrEnum):
    """Whether a heartbeat wakes its agent."""

    OFF = "off"
    ON = "on"
    PAUSED = "paused"
    """Paused by Bullpen; `reason` has the cause."""


@dataclass(frozen=True, slots=True)
class ActiveHours:
    """The hours of the day in which an agent is woken, in minutes since midnight."""

    start: int
    end: int

    @classmethod
    def parse(cls, text: str) -> ActiveHours:
        """Parse hours such as `08:00-18:00`; `22:00-06:00` includes midnight."""
        match = _HOURS_PATTERN.fullmatch(text.strip())
        if match is None:
            raise BadHeartbeat(f"invalid hours {text[:40]!r}", hint=HOURS_HINT)
        hour, minute, end_hour, end_minute = (int(each) for each in match.groups())
        start, end = hour * 60 + minute, end_hour * 60 + end_minute
        if minute > 59 or end_minute > 59 or start >= MINUTES_PER_DAY or end > MINUTES_PER_DAY:
            raise BadHeartbeat(f"invalid hours {text[:40]!r}", hint=HOURS_HINT)
        if start == end:
            raise BadHeartbeat(
                f"hours {text[:40]!r} are empty", hint="Use `all` for the whole day."
            )
        return cls(start, end)

    def __str__(self) -> str:
        ends = (self.start, self.end)
        return "-".join(f"{each // 60:02}:{each % 60:02}" for each in ends)

    def contains(self, moment: int, zone: ZoneInfo) -> bool:
        """Whether the local time of this zone is within the hours."""
        local = datetime.fromtimestamp(moment / SECOND, UTC).astimezone(zone)
        minute = local.hour * 60 + local.minute
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def next(self, moment: int, zone: ZoneInfo) -> int:
        """The first moment within the hours, from this one on."""
        if self.contains(moment, zone):
            return moment
        local = datetime.fromtimestamp(moment / SECOND, UTC).astimezone(zone)
        for days in range(3):
            day = (local + timedelta(days=days)).replace(
                hour=self.start // 60, minute=self.start % 60, second=0, microsecond=0, fold=0
            )
            begins = int(day.timestamp()) * SECOND
            if begins > moment and self.contains(begins, zone):
                return begins
        # The clock skips the start of the hours.
        return moment + HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """When and how an agent is woken. An agent has none until it is turned on or changed."""

    agent: str
    state: HeartbeatState = HeartbeatState.OFF
    reason: str | None = None
    every: int = HOUR
    hours: ActiveHours | None = None
    """None is the whole day."""
    budget: int = 24
    """The most heartbeats a day."""
    max_silent: int = 48
    """Paused after this many silent heartbeats in a row; 0 is never."""
    place: DeliveryAddress | None = None
    """The reply address; None is the owner's."""
    silent: int = 0
    errors: int = 0
    due_at: int | None = None
    last_at: int | None = None
    created_at: int = 0
    updated_at: int = 0


def heartbeat_from_row(
    agent: str,
    state: str,
    reason: str | None,
    every: int,
    active_from: int | None,
    active_until: int | None,
    budget: int,
    max_silent: int,
    channel: str,
    sender_id: str | None,
    reply_to: str | None,
    silent: int,
    errors: int,
    due_at: int | None,
    last_at: int | None,
    created_at: int,
    updated_at: int,
) -> Heartbeat:
    """The heartbeat of a row; the arguments are in the order of the columns."""
    address = None if reply_to is None else ReplyTo.parse(reply_to)
    return Heartbeat(
        agent=agent,
        state=HeartbeatState(state),
        reason=reason,
        every=every,
        hours=(
            None
            if active_from is None or active_until is None
            else ActiveHours(active_from, active_until)
        ),
        budget=budget,
        max_silent=max_silent,
        place=DeliveryAddress(channel, sender_id, address) if channel else None,
        silent=silent,
        errors=errors,
        due_at=due_at,
        last_at=last_at,
        created_at=created_at,
        updated_at=updated_at,
    )


def heartbeat_values(heartbeat: Heartbeat) -> dict[str, object]:
    """The values of its row."""
    hours, place = heartbeat.hours, heartbeat.place
    address = None if place is None else place.reply_to
    return {
        "agent": heartbeat.agent,
        "state": heartbeat.state.value,
        "reason": heartbeat.reason,
        "every": heartbeat.every,
        "active_from": None if hours is None else hours.start,
        "active_until": None if hours is None else hours.end,
        "budget": heartbeat.budget,
        "max_silent": heartbeat.max_silent,
        "channel": "" if place is None else place.channel,
        "sender_id": None if place is None else place.sender_id,
        "reply_to": None if address is None else str(address),
        "silent": heartbeat.silent,
        "errors": heartbeat.errors,
        "due_at": heartbeat.due_at,
        "last_at": heartbeat.last_at,
        "created_at": heartbeat.created_at,
        "updated_at": heartbeat.updated_at,
    }
