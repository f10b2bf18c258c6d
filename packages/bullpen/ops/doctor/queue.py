"""Checks of the queue: stale leases, dead letters, held messages, paused and unattended lanes."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, func, select

from bullpen.core.answers.leases import by_clock, expire_leases
from bullpen.core.background import count_live_workers
from bullpen.core.clock import DAY, MINUTE, SECOND
from bullpen.core.inspect.lanes import LaneRecord, list_lanes
from bullpen.core.maintenance.jobs import list_job_statuses
from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.outbox.hold import find_hold
from bullpen.core.states import CLAIMABLE_LANE_STATES, NEEDS_PERSON_STATES, LaneState, MessageState
from bullpen.core.store.statement import Statement
from bullpen.ops.doctor.check import PASSED, Fix, Needs, Problem, Severity, Verdict, check
from bullpen.ops.doctor.installation import Installation

STALE_AFTER_MS = 30 * SECOND
"""The job that takes expired leases back runs every five seconds."""
MAX_COUNTED = 1000
MIN_FAILURES = 3
MAX_LANES_SHOWN = 4

M = MESSAGES.c

# The states are named twice, so that SQLite recognises the index of those that wait for people.
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


def _format_count(count: int) -> str:
    return f"{count} or more" if count >= MAX_COUNTED else str(count)


def _names(lanes: list[LaneRecord]) -> str:
    names = ", ".join(f"@{each.agent}" for each in lanes[:MAX_LANES_SHOWN])
    return names + (
        f" and {len(lanes) - MAX_LANES_SHOWN} more" if len(lanes) > MAX_LANES_SHOWN else ""
    )


@check("queue.stale_leases", Severity.WARNING, Needs.SCHEMA)
def stale_leases(installation: Installation) -> Problem | Verdict:
    """Claims whose worker is gone, and that nobody took back."""
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
        text=f"the work of {_names(stale)} is claimed by workers that are gone, and nobody"
        " takes it back",
        remedy="bullpen up, whose scheduler does; or bullpen doctor --fix",
        fix=Fix(
            steps=tuple(f"take back what was claimed of @{each.agent}" for each in stale),
            apply=apply,
        ),
    )


@check("queue.dead_letters", Severity.WARNING, Needs.SCHEMA)
def dead_letters(installation: Installation) -> Problem | Verdict:
    """Messages that could not be answered; a warning where some died within a day."""
    lately = _count(installation, MessageState.DEAD, installation.now - DAY)
    ever = lately if lately >= MAX_COUNTED else _count(installation, MessageState.DEAD)
    if not ever:
        return PASSED
    return Problem(
        text=f"{_format_count(ever)} messages are dead,"
        f" {_format_count(lately)} of them since yesterday",
        remedy="bullpen queue dead shows them and why; bullpen queue retry ID tries one again",
        severity=None if lately else Severity.INFO,
    )


@check("queue.held", Severity.INFO, Needs.SCHEMA)
def held(installation: Installation) -> Problem | Verdict:
    """Messages that a person must let go on."""
    count = _count(installation, MessageState.HELD)
    if not count:
        return PASSED
    return Problem(
        text=f"{_format_count(count)} messages wait for you", remedy="bullpen queue held"
    )


@check("queue.lane_paused", Severity.WARNING, Needs.SCHEMA)
def lane_paused(installation: Installation) -> Problem | Verdict:
    """Agents that are paused; a warning where messages wait for them."""
    with installation.store.read() as tx:
        lanes = list_lanes(tx)
    paused = [each for each in lanes if each.state == LaneState.PAUSED.value]
    if not paused:
        return PASSED
    waiting = [each for each in paused if each.pending]
    first = (waiting or paused)[0]
    return Problem(
        text=f"paused: {_names(paused)}, with {sum(each.pending for each in paused)} messages"
        f" waiting; @{first.agent}, for: {first.reason or 'no reason given'}",
        remedy=f"bullpen agent resume {first.agent}, when the reason is gone",
        severity=None if waiting else Severity.INFO,
    )


@check("queue.unattended", Severity.WARNING, Needs.SCHEMA)
def unattended(installation: Installation) -> Problem | Verdict:
    """Messages wait, and no processor is there to answer them."""
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
        text=f"{count} messages wait for {_names(waiting)}, and no processor runs",
        remedy="bullpen up",
    )


@check("queue.upkeep", Severity.WARNING, Needs.SCHEMA)
def jobs_failing(installation: Installation) -> Problem | Verdict:
    """A loop that keeps the store in order fails again and again, or is not run."""
    with installation.store.read() as tx:
        loops, alive = list_job_statuses(tx), count_live_workers(tx)
    failing = [each for each in loops if each.failures >= MIN_FAILURES]
    if failing:
        worst = max(failing, key=lambda each: each.failures)
        return Problem(
            text=f"{', '.join(each.name for each in failing)} fail; {worst.name} did"
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
            text=f"{', '.join(each.name for each in late)} should have run {minutes} minutes ago",
            remedy="bullpen restart scheduler",
        )
    return PASSED


@check("queue.on_hold", Severity.WARNING, Needs.SCHEMA)
def on_hold(installation: Installation) -> Problem | Verdict:
    """Nothing goes out and nothing comes due, as after a backup was restored."""
    with installation.store.read() as tx:
        hold = find_hold(tx)
    if hold is None:
        return PASSED
    return Problem(
        text=f"nothing goes out and nothing comes due until you let it go: {hold.reason[:200]}",
        remedy="bullpen db release --dry-run shows what waits; bullpen db release",
    )


CHECKS = (on_hold, stale_leases, dead_letters, held, lane_paused, unattended, jobs_failing)
