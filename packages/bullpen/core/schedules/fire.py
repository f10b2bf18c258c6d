"""Fires schedules that are due, applies the policy for missed times, and records each run."""

from __future__ import annotations

import logging

from sqlalchemy import bindparam, select, update

from bullpen.core.clock import seconds_until
from bullpen.core.errors import LaneError, StoreError, UnknownAgent
from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.schedule import ScheduleFired, ScheduleMissed, ScheduleSkipped
from bullpen.core.intake import submit_to
from bullpen.core.message import SCHEDULE, NewMessage
from bullpen.core.models import MESSAGES, SCHEDULES
from bullpen.core.models.archive import in_conversation
from bullpen.core.models.base import const
from bullpen.core.outbox.hold import find_hold
from bullpen.core.queue.lanes import lock_lane
from bullpen.core.schedules.history import (
    SELECT_LAST_MESSAGE,
    ScheduleOutcome,
    is_recorded,
    record_run,
)
from bullpen.core.schedules.manage import (
    ScheduleTarget,
    agent_of_author,
    find_target,
    pause_and_notify,
)
from bullpen.core.schedules.model import (
    OverlapPolicy,
    S,
    Schedule,
    ScheduleState,
    append_schedule_event,
    event_values,
    get_schedule,
    lock_schedule,
    next_due,
    schedule_from_row,
)
from bullpen.core.schedules.timing import FirePlan, MissedPolicy, MissedTimes, plan_fire
from bullpen.core.states import UNFINISHED_STATES
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import format_count

M = MESSAGES.c

log = logging.getLogger(__name__)

BATCH_SCHEDULES = 100

SELECT_DUE: Statement[Schedule] = Statement(
    lambda: (
        select(*S)
        .where(S.state == const(ScheduleState.ACTIVE.value), S.due_at <= bindparam("now"))
        .order_by(S.due_at)
        .limit(const(BATCH_SCHEDULES))
    ),
    schedule_from_row,
)

# If several schedulers see the same due time, only one advances it.
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

# Any unfinished message of the run's conversation.
SELECT_UNFINISHED: Statement[tuple[str]] = Statement(
    lambda: (
        select(M.message_id)
        .where(
            in_conversation(),
            M.status.in_([const(state.value) for state in UNFINISHED_STATES]),
        )
        .limit(const(1))
    )
)


def fire_due_schedules(store: Store) -> float:
    """Fire every schedule that is due; returns the seconds until the next one is."""
    with store.read() as tx:
        if find_hold(tx) is not None:
            return seconds_until(None, tx.now)
        due = tx.all(SELECT_DUE, {"now": tx.now})
        now, following = tx.now, None if due else next_due(tx)
    if not due:
        return seconds_until(following, now)
    for schedule in due:
        _fire_or_pause(store, schedule, now, schedule.missed)
    return 0.0


def skip_missed(store: Store) -> int:
    """Record every due time that has passed as missed, without firing it.

    Returns the number of schedules. Times that are due within this minute fire as usual.
    """
    total = 0
    while True:
        with store.read() as tx:
            now, due = tx.now, tx.all(SELECT_DUE, {"now": tx.now})
        if not due:
            return total
        for schedule in due:
            _fire_or_pause(store, schedule, now, MissedPolicy.SKIP)
        total += len(due)


def fire_schedule(tx: Transaction, schedule: Schedule, plan: FirePlan) -> int:
    """Carry out a plan unless another scheduler did; returns how many due times fired."""
    target = find_target(tx, schedule)
    if target is not None:
        lock_lane(tx, target.agent)
    becomes = ScheduleState.DONE if plan.next is None else ScheduleState.ACTIVE
    seen = {"schedule": schedule.id, "seen": schedule.due_at, "version": schedule.updated_at}
    if tx.change(ADVANCE_SCHEDULE, {**seen, "next": plan.next, "becomes": becomes.value}) == 0:
        return 0
    if target is None:
        target_name = schedule.agent or schedule.team_id
        pause_and_notify(tx, schedule, f"{target_name} was removed")
        return 0
    if plan.dropped is not None:
        _record_missed(tx, schedule, plan.dropped)
    fired = 0
    for due in plan.fire:
        # A due time can occur twice if the clock was set back.
        if not is_recorded(tx, schedule, due):
            together = schedule.missed is MissedPolicy.ALL and fired > 0
            fired += _fire_due_time(tx, schedule, target, due, together)
    return fired


def run_schedule_now(tx: Transaction, name: str) -> str:
    """Enqueue its message now, whatever its state; returns the message's id."""
    schedule = get_schedule(tx, name)
    target = find_target(tx, schedule)
    if target is None:
        raise UnknownAgent(f"{schedule.agent or schedule.team_id} was removed")
    message = _submit(tx, schedule, target, 0)
    record_run(tx, schedule, None, ScheduleOutcome.FIRED, message_id=message)
    _append_fired(tx, schedule, target, message)
    return message


def find_unfinished_message(tx: Transaction, schedule: Schedule) -> str | None:
    """An unfinished message of the last run's conversation, if there is one."""
    last = tx.one(SELECT_LAST_MESSAGE, {"schedule": schedule.id})
    row = None if last is None else tx.one(SELECT_UNFINISHED, {"conversation": last[0]})
    return None if row is None else row[0]


def _fire_or_pause(store: Store, schedule: Schedule, now: int, missed: MissedPolicy) -> None:
    """Fire a schedule; one that fails is paused so that it does not block the others."""
    assert schedule.due_at is not None
    try:
        plan = plan_fire(schedule.timing, schedule.due_at, now, missed)
        with store.write() as tx:
            fired = fire_schedule(tx, schedule, plan)
        if fired:
            log.info("schedule %s fired for %s", schedule.id, schedule.agent or schedule.team_id)
    except StoreError:
        raise
    except Exception as error:
        log.exception("schedule %s cannot fire", schedule.id)
        with store.write() as tx:
            current = lock_schedule(tx, schedule.id)
            if current == schedule:
                pause_and_notify(tx, current, f"cannot fire: {str(error)[:500]}")


def _fire_due_time(
    tx: Transaction, schedule: Schedule, target: ScheduleTarget, due: int, together: bool
) -> bool:
    """Whether it fired. Due times that are caught up together do not count as overlapping."""
    if schedule.overlap is OverlapPolicy.SKIP and not together:
        last = find_unfinished_message(tx, schedule)
        if last is not None:
            _record_skipped(tx, schedule, due, f"{last} of the previous run is not finished")
            return False
    try:
        message = _submit(tx, schedule, target, int(tx.chance() * (schedule.jitter + 1)))
    except LaneError as error:
        _record_skipped(tx, schedule, due, str(error))
        return False
    record_run(tx, schedule, due, ScheduleOutcome.FIRED, message_id=message)
    _append_fired(tx, schedule, target, message, due_at=due)
    return True


def _submit(tx: Transaction, schedule: Schedule, target: ScheduleTarget, delay: int) -> str:
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
    return submit_to(tx, new).message_id


def _append_fired(
    tx: Transaction,
    schedule: Schedule,
    target: ScheduleTarget,
    message: str,
    due_at: int | None = None,
) -> None:
    fired = ScheduleFired(
        MessageRef(target.agent, message, message),
        schedule=schedule.id,
        label=schedule.label,
        team=target.team_id,
        due_at=due_at,
    )
    append_event(tx, fired)


def _record_skipped(tx: Transaction, schedule: Schedule, due: int, reason: str) -> None:
    record_run(tx, schedule, due, ScheduleOutcome.SKIPPED, reason=reason)
    append_schedule_event(tx, ScheduleSkipped(due_at=due, reason=reason, **event_values(schedule)))


def _record_missed(tx: Transaction, schedule: Schedule, dropped: MissedTimes) -> None:
    over = "more than " if dropped.more else ""
    reason = (
        f"{over}{format_count(dropped.times, 'due time')} passed while no scheduler was running"
    )
    first, last, times = dropped.first, dropped.last, dropped.times
    if not is_recorded(tx, schedule, first):
        missed = ScheduleOutcome.MISSED
        record_run(tx, schedule, first, missed, until=last, times=times, reason=reason)
    append_schedule_event(
        tx,
        ScheduleMissed(
            reason=reason, first=first, last=last, times=times, **event_values(schedule)
        ),
    )
