"""The columns of a schedule, and a row of them as a Schedule."""

from __future__ import annotations

from sqlalchemy import Column

from bullpen.core.message import ReplyTo
from bullpen.core.models import SCHEDULES
from bullpen.core.outbox.place import DeliveryAddress
from bullpen.core.schedules.plan import MissedPolicy
from bullpen.core.schedules.schedule import OverlapPolicy, Schedule, ScheduleState
from bullpen.core.schedules.timing import Timing, TimingKind

S = SCHEDULES.c


def columns() -> tuple[Column[object], ...]:
    """The columns, in the order of `ScheduleTuple`."""
    return tuple(SCHEDULES.c)


ScheduleTuple = tuple[
    str, str | None, str | None, str | None, str, str, str | None, int | None, int | None, str, int,
    str, str, str | None, str | None, str, str, int, str, str | None, int | None, str, int, int,
]  # fmt: skip


def schedule_from_row(row: ScheduleTuple) -> Schedule:
    """The schedule in this row."""
    (
        id_, label, agent, team, message, kind, cron, every, at, zone, anchor,
        channel, sender, sender_id, reply_to, missed, overlap, jitter, state, reason, due_at,
        made_by, created_at, updated_at,
    ) = row  # fmt: skip
    return Schedule(
        id=id_,
        label=label,
        agent=agent,
        team_id=team,
        message=message,
        timing=Timing(
            kind=TimingKind(kind), cron=cron, every=every, at=at, zone=zone, anchor=anchor
        ),
        place=DeliveryAddress(
            channel, sender_id, None if reply_to is None else ReplyTo.parse(reply_to)
        ),
        sender=sender,
        missed=MissedPolicy(missed),
        overlap=OverlapPolicy(overlap),
        jitter=jitter,
        state=ScheduleState(state),
        reason=reason,
        due_at=due_at,
        made_by=made_by,
        created_at=created_at,
        updated_at=updated_at,
    )


def schedule_values(schedule: Schedule) -> dict[str, object]:
    """What its row holds."""
    timing, place = schedule.timing, schedule.place
    return {
        "id": schedule.id,
        "label": schedule.label,
        "agent": schedule.agent,
        "team_id": schedule.team_id,
        "message": schedule.message,
        "kind": timing.kind.value,
        "cron": timing.cron,
        "every": timing.every,
        "at": timing.at,
        "zone": timing.zone,
        "anchor": timing.anchor,
        "channel": place.channel,
        "sender": schedule.sender,
        "sender_id": place.sender_id,
        "reply_to": None if place.reply_to is None else str(place.reply_to),
        "missed": schedule.missed.value,
        "overlap": schedule.overlap.value,
        "jitter": schedule.jitter,
        "state": schedule.state.value,
        "reason": schedule.reason,
        "due_at": schedule.due_at,
        "made_by": schedule.made_by,
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
    }
