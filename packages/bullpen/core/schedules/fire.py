"""A schedule fires: its due times are accounted for and its messages enqueued, all in one."""

from __future__ import annotations

from sqlalchemy import bindparam, update

from bullpen.core.errors import LaneError, UnknownAgent
from bullpen.core.events.append import EventType, append_event
from bullpen.core.message import SCHEDULE, NewMessage
from bullpen.core.models import SCHEDULES
from bullpen.core.models.base import const
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.lane import lock_lane
from bullpen.core.schedules.author import agent_of_author
from bullpen.core.schedules.columns import S
from bullpen.core.schedules.find import get_schedule
from bullpen.core.schedules.plan import FirePlan, MissedPolicy, MissedTimes
from bullpen.core.schedules.record import (
    ScheduleOutcome,
    find_unfinished_message,
    is_recorded,
    record_run,
)
from bullpen.core.schedules.schedule import OverlapPolicy, Schedule, ScheduleState
from bullpen.core.schedules.stop import pause_and_notify
from bullpen.core.schedules.target import ScheduleTarget, find_target
from bullpen.core.schedules.write import append_schedule_event
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

# Of many schedulers that come with the same due time, one moves it on.
ADVANCE_SCHEDULE: Statement[None] = Statement(
    lambda: (
        update(SCHEDULES)
        .where(
            S.id == bindparam("schedule"),
            S.state == const(ScheduleState.ACTIVE.value),
            S.due_at == bindparam("seen"),
            S.updated_at == bindparam("version"),
        )
        .values(due_at=bindparam("next"), state=bindparam("becomes"))
    )
)


def fire_schedule(tx: Transaction, schedule: Schedule, decided: FirePlan) -> int:
    """Do what was decided of an active schedule, unless another did; gives how many fired."""
    target = find_target(tx, schedule)
    if target is not None:
        lock_lane(tx, target.agent)
    becomes = ScheduleState.DONE if decided.next is None else ScheduleState.ACTIVE
    seen = {"schedule": schedule.id, "seen": schedule.due_at, "version": schedule.updated_at}
    if tx.change(ADVANCE_SCHEDULE, {**seen, "next": decided.next, "becomes": becomes.value}) == 0:
        return 0
    if target is None:
        whom = schedule.agent or schedule.team_id
        pause_and_notify(tx, schedule, f"{whom} is not there any more")
        return 0
    if decided.dropped is not None:
        _record_missed(tx, schedule, decided.dropped)
    fired = 0
    for due in decided.fire:
        # One may come again: the clock was set back, and the schedule changed since.
        if not is_recorded(tx, schedule, due):
            together = schedule.missed is MissedPolicy.ALL and fired > 0
            fired += _fire_due_time(tx, schedule, target, due, together)
    return fired


def run_schedule_now(tx: Transaction, name: str) -> str:
    """Put its message into the queue at once, whatever its state; gives the message's id."""
    schedule = get_schedule(tx, name)
    target = find_target(tx, schedule)
    if target is None:
        raise UnknownAgent(f"{schedule.agent or schedule.team_id} is not there any more")
    message = _enqueue(tx, schedule, target, 0)
    record_run(tx, schedule, None, ScheduleOutcome.FIRED, message_id=message)
    _append_fired(tx, schedule, target, message)
    return message


def _fire_due_time(
    tx: Transaction, schedule: Schedule, target: ScheduleTarget, due: int, together: bool
) -> bool:
    """Whether it fired. What is made up for together does not wait for its own beginning."""
    if schedule.overlap is OverlapPolicy.SKIP and not together:
        last = find_unfinished_message(tx, schedule)
        if last is not None:
            _record_skipped(tx, schedule, due, f"{last} of the last run is not through")
            return False
    try:
        message = _enqueue(tx, schedule, target, int(tx.chance() * (schedule.jitter + 1)))
    except LaneError as error:
        _record_skipped(tx, schedule, due, str(error))
        return False
    record_run(tx, schedule, due, ScheduleOutcome.FIRED, message_id=message)
    _append_fired(tx, schedule, target, message, due_at=due)
    return True


def _enqueue(tx: Transaction, schedule: Schedule, target: ScheduleTarget, delay: int) -> str:
    maker = agent_of_author(schedule.made_by)
    new = NewMessage(
        agent=target.agent,
        message=schedule.message,
        channel=schedule.place.channel,
        sender=schedule.sender,
        sender_id=schedule.place.sender_id,
        reply_to=schedule.place.reply_to,
        from_agent=None if maker == target.agent else maker,
        team_id=target.team_id,
        delay=delay,
        origin=SCHEDULE,
    )
    message = enqueue(tx, new).message_id
    if target.team_id is not None:
        told = {"message_id": message, "conversation_id": message, "team": target.team_id}
        append_event(tx, EventType.TEAM_CHAIN_START, agent=target.agent, **told)
    return message


def _record_skipped(tx: Transaction, schedule: Schedule, due: int, reason: str) -> None:
    record_run(tx, schedule, due, ScheduleOutcome.SKIPPED, reason=reason)
    append_schedule_event(tx, EventType.SCHEDULE_SKIPPED, schedule, due_at=due, reason=reason)


def _record_missed(tx: Transaction, schedule: Schedule, dropped: MissedTimes) -> None:
    over = "more than " if dropped.more else ""
    reason = f"{over}{dropped.times} due times passed while no scheduler ran"
    first, last, times = dropped.first, dropped.last, dropped.times
    if not is_recorded(tx, schedule, first):
        missed = ScheduleOutcome.MISSED
        record_run(tx, schedule, first, missed, until=last, times=times, reason=reason)
    span = {"first": first, "last": last, "times": times}
    append_schedule_event(tx, EventType.SCHEDULE_MISSED, schedule, reason=reason, **span)


def _append_fired(
    tx: Transaction,
    schedule: Schedule,
    target: ScheduleTarget,
    message: str,
    due_at: int | None = None,
) -> None:
    append_event(
        tx,
        EventType.SCHEDULE_FIRED,
        agent=target.agent,
        conversation_id=message,
        message_id=message,
        schedule=schedule.id,
        label=schedule.label,
        team=target.team_id,
        due_at=due_at,
    )
