"""The columns of a heartbeat, and a row of them as a Heartbeat."""

from __future__ import annotations

from sqlalchemy import Column

from bullpen.core.heartbeats.heartbeat import ActiveHours, Heartbeat, HeartbeatState
from bullpen.core.message import ReplyTo
from bullpen.core.models import HEARTBEATS
from bullpen.core.outbox.place import DeliveryAddress

H = HEARTBEATS.c


def columns() -> tuple[Column[object], ...]:
    """The columns, in the order of `HeartbeatTuple`."""
    return tuple(H)


HeartbeatTuple = tuple[
    str, str, str | None, int, int | None, int | None, int, int, str, str | None, str | None,
    int, int, int | None, int | None, int, int,
]  # fmt: skip


def heartbeat_from_row(row: HeartbeatTuple) -> Heartbeat:
    """The heartbeat in this row."""
    (
        agent, state, reason, every, start, end, budget, max_silent, channel, sender_id, reply_to,
        silent, errors, due_at, last_at, created_at, updated_at,
    ) = row  # fmt: skip
    address = None if reply_to is None else ReplyTo.parse(reply_to)
    return Heartbeat(
        agent=agent,
        state=HeartbeatState(state),
        reason=reason,
        every=every,
        hours=None if start is None or end is None else ActiveHours(start, end),
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
    """What its row holds."""
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
