"""Lanes in a table."""

from __future__ import annotations

from bullpen.cli.span import format_duration
from bullpen.cli.visible import one_line
from bullpen.core.queue.overview import LaneActivity
from bullpen.core.states import LaneState

LANE_REASON_CHARS = 100
LANE_TEXT_CHARS = 60


def format_age(now: int, since: int | None) -> str:
    """How long ago, or nothing."""
    return "" if since is None else format_duration(now - since)


def lane_activity(lane: LaneActivity, now: int) -> str:
    """What the lane is at, and since when."""
    if lane.message_id is None or lane.claimed_at is None:
        return ""
    more = f" and {lane.processing - 1} more" if lane.processing > 1 else ""
    return f"{lane.message_id}{more}, {format_duration(now - lane.claimed_at)}"


def blocked_reason(lane: LaneActivity, now: int) -> str:
    """Why it does not run, if it does not."""
    if lane.state != LaneState.ACTIVE:
        return one_line(f"{lane.state}: {lane.reason or 'nobody said why'}", LANE_REASON_CHARS)
    if lane.not_before is not None and lane.not_before > now:
        return f"its provider asked it to wait {format_duration(lane.not_before - now)}"
    if lane.lease_expires_at is not None and lane.lease_expires_at < now:
        return f"its worker was not heard of for {format_duration(now - lane.lease_expires_at)}"
    return ""
