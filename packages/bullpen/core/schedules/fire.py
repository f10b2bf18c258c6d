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
from bullpen.core.schedules.author import agent_in
from bullpen.core.schedules.columns import S
from bullpen.core.schedules.find import see_schedule
from bullpen.core.schedules.plan import Dropped, Missed, Plan
from bullpen.core.schedules.record import RunOutcome, is_recorded, open_message, record
from bullpen.core.schedules.schedule import Overlap, Schedule, ScheduleState
from bullpen.core.schedules.stop import stop_and_tell
from bullpen.core.schedules.target import Target, find_target
from bullpen.core.schedules.write import tell
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

# Of many schedulers that come with the same due time, one moves it on.
ADVANCE: Statement[None] = Statement(
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


def fire(tx: Transaction, schedule: Schedule, decided: Plan) -> int:
    """Do what was decided of an active schedule, unless another did; gives how many fired."""
    target = find_target(tx, schedule)
    if target is not None:
        lock_lane(tx, target.agent)
    becomes = ScheduleState.DONE if decided.next is None else ScheduleState.ACTIVE
    seen = {"schedule": schedule.id, "seen": schedule.due_at, "version": schedule.updated_at}
    if tx.change(ADVANCE, {**seen, "next": decided.next, "becomes": becomes.value}) == 0:
        return 0
    if target is None:
        whom = schedule.agent or schedule.team_id
        stop_and_tell(tx, schedule, f"{whom} is not there any more")
        return 0
    if decided.dropped is not None:
        _drop(tx, schedule, decided.dropped)
    fired = 0
    for due in decided.fire:
        # One may come again: the clock was set back, and the schedule changed since.
        if not is_recorded(tx, schedule, due):
            together = schedule.missed is Missed.ALL and fired > 0
            fired += _run(tx, schedule, target, due, together)
    return fired


def run_now(tx: Transaction, name: str) -> str:
    """Put its message into the queue at once, whatever its state; gives the message's id."""
    schedule = see_schedule(tx, name)
    target = find_target(tx, schedule)
    if target is None:
        raise UnknownAgent(f"{schedule.agent or schedule.team_id} is not there any more")
    message = _enqueue(tx, schedule, target, 0)
    record(tx, schedule, None, RunOutcome.FIRED, message_id=message)
    _fired(tx, schedule, target, message)
    return message


def _run(tx: Transaction, schedule: Schedule, target: Target, due: int, together: bool) -> bool:
    """Whether it fired. What is made up for together does not wait for its own beginning."""
    if schedule.overlap is Overlap.SKIP and not together:
        last = open_message(tx, schedule)
        if last is not None:
            _skip(tx, schedule, due, f"{last} of the last run is not through")
            return False
    try:
        message = _enqueue(tx, schedule, target, int(tx.chance() * (schedule.jitter + 1)))
    except LaneError as error:
        _skip(tx, schedule, due, str(error))
        return False
    record(tx, schedule, due, RunOutcome.FIRED, message_id=message)
    _fired(tx, schedule, target, message, due_at=due)
    return True


def _enqueue(tx: Transaction, schedule: Schedule, target: Target, delay: int) -> str:
    maker = agent_in(schedule.made_by)
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


def _skip(tx: Transaction, schedule: Schedule, due: int, reason: str) -> None:
    record(tx, schedule, due, RunOutcome.SKIPPED, reason=reason)
    tell(tx, EventType.SCHEDULE_SKIPPED, schedule, due_at=due, reason=reason)


def _drop(tx: Transaction, schedule: Schedule, dropped: Dropped) -> None:
    over = "more than " if dropped.more else ""
    reason = f"{over}{dropped.times} due times passed while no scheduler ran"
    first, last, times = dropped.first, dropped.last, dropped.times
    if not is_recorded(tx, schedule, first):
        missed = RunOutcome.MISSED
        record(tx, schedule, first, missed, until=last, times=times, reason=reason)
    span = {"first": first, "last": last, "times": times}
    tell(tx, EventType.SCHEDULE_MISSED, schedule, reason=reason, **span)


def _fired(
    tx: Transaction, schedule: Schedule, target: Target, message: str, due_at: int | None = None
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
