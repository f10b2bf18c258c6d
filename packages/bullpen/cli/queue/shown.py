"""Lanes in a table."""

from __future__ import annotations

from bullpen.cli.span import span
from bullpen.cli.visible import one_line
from bullpen.core.queue.overview import LaneNow
from bullpen.core.states import LaneState

REASON = 100
TEXT = 60


def age(now: int, since: int | None) -> str:
    """How long ago, or nothing."""
    return "" if since is None else span(now - since)


def doing(lane: LaneNow, now: int) -> str:
    """What the lane is at, and since when."""
    if lane.message_id is None or lane.claimed_at is None:
        return ""
    more = f" and {lane.processing - 1} more" if lane.processing > 1 else ""
    return f"{lane.message_id}{more}, {span(now - lane.claimed_at)}"


def why_not(lane: LaneNow, now: int) -> str:
    """Why it does not run, if it does not."""
    if lane.state != LaneState.ACTIVE:
        return one_line(f"{lane.state}: {lane.reason or 'nobody said why'}", REASON)
    if lane.not_before is not None and lane.not_before > now:
        return f"its provider asked it to wait {span(lane.not_before - now)}"
    if lane.lease_expires_at is not None and lane.lease_expires_at < now:
        return f"its worker was not heard of for {span(now - lane.lease_expires_at)}"
    return ""
