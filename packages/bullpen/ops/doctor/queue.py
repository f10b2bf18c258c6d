"""Checks of the queue: stale leases, dead letters, messages and responses without a worker."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, func, select

from bullpen.core.answers.leases import by_clock, expire_leases
from bullpen.core.background import count_live_workers
from bullpen.core.clock import DAY, MINUTE, SECOND
from bullpen.core.inspect.lanes import LaneRecord, list_lanes
from bullpen.core.inspect.queue import waiting_since
from bullpen.core.maintenance.jobs import list_job_statuses
from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.outbox.hold import find_hold
from bullpen.core.states import CLAIMABLE_LANE_STATES, NEEDS_PERSON_STATES, LaneState, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.text import format_count
from bullpen.ops.doctor.check import PASSED, Fix, Needs, Problem, Severity, Verdict, check
from bullpen.ops.doctor.installation import Installation

STALE_AFTER_MS = 30 * SECOND
"""The job that releases expired leases runs every five seconds."""
NO_WORKER_AFTER_MS = 2 * MINUTE
"""The time after which a pending message without a claim is reported."""
MAX_COUNTED = 1000
MIN_FAILURES = 3
MAX_LANES_SHOWN = 4

M = MESSAGES.c

# The states are named twice, so that SQLite recognises the index of held and dead messages.
COUNT_SINCE: Statement[tuple[int]] = Statement(
    lambda: select(func.count()).select_from(
        select(M.id)
        .where(
            and_(
                M.status == bindparam("state"),
                M.status.in_([const(each.value) for each in NEEDS_PERSON_STATES]),
            ),
            M.updated_at >= bindparam("since"),
        )
        .limit(const(MAX_COUNTED))
        .subquery()
    )
)


def _count(installation: Installation, state: MessageState, since: int = 0) -> int:
    with installation.store.read() as tx:
        row = tx.one(COUNT_SINCE, {"state": state.value, "since": since})
    return 0 if row is None else row[0]


def _at_least(count: int) -> str:
    return f"{count} or more" if count >= MAX_COUNTED else str(count)


def _messages(count: int, one: str, many: str) -> str:
    return f"{_at_least(count)} {one if count == 1 else many}"


def _names(lanes: list[LaneRecord]) -> str:
    names = ", ".join(f"@{each.agent}" for each in lanes[:MAX_LANES_SHOWN])
    return names + (
        f" and {len(lanes) - MAX_LANES_SHOWN} more" if len(lanes) > MAX_LANES_SHOWN else ""
    )


@check("queue.stale_leases", Severity.WARNING, Needs.SCHEMA)
def stale_leases(installation: Installation) -> Problem | Verdict:
    """Workers ended and their claims were not released."""
    with installation.store.read() as tx:
        lanes = list_lanes(tx)
    stale = [
        each
        for each in lanes
        if (each.lease_expires_at or installation.now) < installation.now - STALE_AFTER_MS
    ]
    if not stale:
        return PASSED

    def apply() -> None:
        with installation.store.write() as tx:
            expire_leases(tx, has_ended=by_clock(tx.now, STALE_AFTER_MS))

    return Problem(
        text=f"messages of {_names(stale)} are claimed by workers that have ended, and the claims"
        " were not released",
        remedy="bullpen up starts the scheduler, which releases them; or: bullpen doctor --fix",
        fix=Fix(
            steps=tuple(f"release the claim on @{each.agent}" for each in stale),
            apply=apply,
        ),
    )


@check("queue.dead_letters", Severity.WARNING, Needs.SCHEMA)
def dead_letters(installation: Installation) -> Problem | Verdict:
    """Messages are dead; a warning if any failed within a day."""
    lately = _count(installation, MessageState.DEAD, installation.now - DAY)
    ever = lately if lately >= MAX_COUNTED else _count(installation, MessageState.DEAD)
    if not ever:
        return PASSED
    return Problem(
        text=f"{_messages(ever, 'message is', 'messages are')} dead,"
        f" {_at_least(lately)} of them since yesterday",
        remedy="bullpen queue dead shows the causes; bullpen queue retry ID retries one",
        severity=None if lately else Severity.INFO,
    )


@check("queue.held", Severity.INFO, Needs.SCHEMA)
def held(installation: Installation) -> Problem | Verdict:
    """Messages are held until a person approves them."""
    count = _count(installation, MessageState.HELD)
    if not count:
        return PASSED
    return Problem(
        text=f"{_messages(count, 'message needs', 'messages need')} approval",
        remedy="bullpen queue held",
    )


@check("queue.lane_paused", Severity.WARNING, Needs.SCHEMA)
def lane_paused(installation: Installation) -> Problem | Verdict:
    """Agents are paused; a warning if they have pending messages."""
    with installation.store.read() as tx:
        lanes = list_lanes(tx)
    paused = [each for each in lanes if each.state == LaneState.PAUSED.value]
    if not paused:
        return PASSED
    waiting = [each for each in paused if each.pending]
    first = (waiting or paused)[0]
    pending = sum(each.pending for each in paused)
    return Problem(
        text=f"paused: {_names(paused)}, with {format_count(pending, 'pending message')};"
        f" reason of @{first.agent}: {first.reason or 'none given'}",
        remedy=f"After fixing this, run: bullpen agent resume {first.agent}",
        severity=None if waiting else Severity.INFO,
    )


@check("queue.unattended", Severity.WARNING, Needs.SCHEMA)
def unattended(installation: Installation) -> Problem | Verdict:
    """Messages are pending, and no processor runs."""
    with installation.store.read() as tx:
        lanes, alive = list_lanes(tx), count_live_workers(tx)
    waiting = [
        each
        for each in lanes
        if each.pending and not each.outside and each.state in CLAIMABLE_LANE_STATES
    ]
    if not waiting or alive.get("processor"):
        return PASSED
    count = sum(each.pending for each in waiting)
    return Problem(
        text=f"{format_count(count, 'message is', 'messages are')} pending for {_names(waiting)},"
        " and no processor runs",
        remedy="bullpen up",
    )


@check("queue.no_worker", Severity.WARNING, Needs.SCHEMA)
def no_worker(installation: Installation) -> Problem | Verdict:
    """Messages are pending for agents with the provider http, and no worker claims them."""
    with installation.store.read() as tx:
        lanes, since = list_lanes(tx), waiting_since(tx)
    idle = [
        each
        for each in lanes
        if each.outside and each.state in CLAIMABLE_LANE_STATES and not each.processing
    ]
    # A worker that claims one message after the other has claimed one a moment ago.
    waits = {
        each.agent: installation.now - max(since[each.agent], each.claimed_at)
        for each in idle
        if each.agent in since
    }
    late = [each for each in idle if waits.get(each.agent, 0) > NO_WORKER_AFTER_MS]
    if not late:
        return PASSED
    count = sum(each.pending for each in late)
    minutes = max(waits[each.agent] for each in late) // MINUTE
    return Problem(
        text=f"{format_count(count, 'message is', 'messages are')} pending for {_names(late)}"
        f" (provider http), and no worker has claimed one for {format_count(minutes, 'minute')}",
        remedy=f"Start the worker of @{late[0].agent}; or:"
        f" bullpen agent set {late[0].agent} --provider echo",
    )


@check("queue.upkeep", Severity.WARNING, Needs.SCHEMA)
def jobs_failing(installation: Installation) -> Problem | Verdict:
    """A maintenance job fails repeatedly, or does not run."""
    with installation.store.read() as tx:
        loops, alive = list_job_statuses(tx), count_live_workers(tx)
    failing = [each for each in loops if each.failures >= MIN_FAILURES]
    if failing:
        worst = max(failing, key=lambda each: each.failures)
        return Problem(
            text=f"failing: {', '.join(each.name for each in failing)}. {worst.name} failed"
            f" {worst.failures} times in a row: {(worst.last_error or '')[:200]}",
            remedy="bullpen status; bullpen logs scheduler",
        )
    late = [
        each
        for each in loops
        if each.next_run_at
        and each.running_since is None
        and each.next_run_at < installation.now - each.every_seconds * SECOND - 5 * MINUTE
    ]
    if late and alive.get("scheduler"):
        minutes = (installation.now - min(each.next_run_at or 0 for each in late)) // MINUTE
        return Problem(
            text=f"overdue for {format_count(minutes, 'minute')}: "
            + ", ".join(each.name for each in late),
            remedy="bullpen restart scheduler",
        )
    return PASSED


@check("queue.on_hold", Severity.WARNING, Needs.SCHEMA)
def on_hold(installation: Installation) -> Problem | Verdict:
    """The home is on hold: responses and schedules are suspended, for example after a restore."""
    with installation.store.read() as tx:
        hold = find_hold(tx)
    if hold is None:
        return PASSED
    return Problem(
        text=f"responses, schedules and heartbeats are on hold: {hold.reason[:200]}",
        remedy="bullpen db release --dry-run lists them; bullpen db release",
    )


CHECKS = (
    *(on_hold, stale_leases, dead_letters, held, lane_paused, unattended, no_worker),
    jobs_failing,
)
