"""Checks of the queue: what is stuck, dead, held, or waits for nobody."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, func, select

from bullpen.core.clock import DAY, MINUTE, SECOND
from bullpen.core.doctor.check import (
    FINE,
    Fix,
    Needs,
    Said,
    Severity,
    Trouble,
    check,
)
from bullpen.core.doctor.patient import Patient
from bullpen.core.maintenance.account import system_agents
from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.outbox.hold import find_hold
from bullpen.core.queue.lane_list import SeenLane, list_lanes
from bullpen.core.queue.reap import reap
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.workers import alive_workers

STALE = 30 * SECOND
"""The loop that takes leases back comes every five seconds."""
MOST = 1000
FAILURES = 3
SHOWN = 4

M = MESSAGES.c
_FOR_PEOPLE = (MessageState.DEAD, MessageState.HELD)

# The states are named twice, so that SQLite recognises the index of those that wait for people.
SINCE: Statement[tuple[int]] = Statement(
    lambda: select(func.count()).select_from(
        select(M.id)
        .where(
            and_(
                M.status == bindparam("state"),
                M.status.in_([const(each.value) for each in _FOR_PEOPLE]),
            ),
            M.updated_at >= bindparam("since"),
        )
        .limit(const(MOST))
        .subquery()
    )
)


def _count(patient: Patient, state: MessageState, since: int = 0) -> int:
    with patient.store.read() as tx:
        row = tx.one(SINCE, {"state": state.value, "since": since})
    return 0 if row is None else row[0]


def _many(count: int) -> str:
    return f"{count} or more" if count >= MOST else str(count)


def _names(lanes: list[SeenLane]) -> str:
    names = ", ".join(f"@{each.agent}" for each in lanes[:SHOWN])
    return names + (f" and {len(lanes) - SHOWN} more" if len(lanes) > SHOWN else "")


@check("queue.stale_leases", Severity.WARNING, Needs.SCHEMA)
def stale_leases(patient: Patient) -> Trouble | Said:
    """Claims whose worker is gone, and that nobody took back."""
    with patient.store.read() as tx:
        lanes = list_lanes(tx)
    stale = [each for each in lanes if (each.lease_expires_at or patient.now) < patient.now - STALE]
    if not stale:
        return FINE

    def do() -> None:
        with patient.store.write() as tx:
            reap(tx)

    return Trouble(
        text=f"the work of {_names(stale)} is claimed by workers that are gone, and nobody"
        " takes it back",
        remedy="bullpen up, whose scheduler does; or bullpen doctor --fix",
        fix=Fix(
            steps=tuple(f"take back what was claimed of @{each.agent}" for each in stale), do=do
        ),
    )


@check("queue.dead_letters", Severity.WARNING, Needs.SCHEMA)
def dead_letters(patient: Patient) -> Trouble | Said:
    """Messages that could not be answered; a warning where some died within a day."""
    lately = _count(patient, MessageState.DEAD, patient.now - DAY)
    ever = lately if lately >= MOST else _count(patient, MessageState.DEAD)
    if not ever:
        return FINE
    return Trouble(
        text=f"{_many(ever)} messages are dead, {_many(lately)} of them since yesterday",
        remedy="bullpen queue dead shows them and why; bullpen queue retry ID tries one again",
        severity=None if lately else Severity.INFO,
    )


@check("queue.held", Severity.INFO, Needs.SCHEMA)
def held(patient: Patient) -> Trouble | Said:
    """Messages that a person must let go on."""
    count = _count(patient, MessageState.HELD)
    if not count:
        return FINE
    return Trouble(text=f"{_many(count)} messages wait for you", remedy="bullpen queue held")


@check("queue.lane_paused", Severity.WARNING, Needs.SCHEMA)
def lane_paused(patient: Patient) -> Trouble | Said:
    """Agents that are paused; a warning where messages wait for them."""
    with patient.store.read() as tx:
        lanes = list_lanes(tx)
    paused = [each for each in lanes if each.state == LaneState.PAUSED.value]
    if not paused:
        return FINE
    waiting = [each for each in paused if each.pending]
    first = (waiting or paused)[0]
    return Trouble(
        text=f"paused: {_names(paused)}, with {sum(each.pending for each in paused)} messages"
        f" waiting; @{first.agent}, for: {first.reason or 'no reason given'}",
        remedy=f"bullpen agent resume {first.agent}, when the reason is gone",
        severity=None if waiting else Severity.INFO,
    )


@check("queue.unattended", Severity.WARNING, Needs.SCHEMA)
def unattended(patient: Patient) -> Trouble | Said:
    """Messages wait, and no processor is there to answer them."""
    with patient.store.read() as tx:
        lanes, alive = list_lanes(tx), alive_workers(tx)
    runs = (LaneState.ACTIVE.value, LaneState.DRAINING.value)
    waiting = [each for each in lanes if each.pending and not each.outside and each.state in runs]
    if not waiting or alive.get("processor"):
        return FINE
    count = sum(each.pending for each in waiting)
    return Trouble(
        text=f"{count} messages wait for {_names(waiting)}, and no processor runs",
        remedy="bullpen up",
    )


@check("queue.upkeep", Severity.WARNING, Needs.SCHEMA)
def upkeep(patient: Patient) -> Trouble | Said:
    """A loop that keeps the store in order fails again and again, or is not run."""
    with patient.store.read() as tx:
        loops, alive = system_agents(tx), alive_workers(tx)
    failing = [each for each in loops if each.failures >= FAILURES]
    if failing:
        worst = max(failing, key=lambda each: each.failures)
        return Trouble(
            text=f"{', '.join(each.name for each in failing)} fail; {worst.name} did"
            f" {worst.failures} times in a row: {(worst.last_error or '')[:200]}",
            remedy="bullpen status; bullpen logs scheduler",
        )
    late = [
        each
        for each in loops
        if each.next_run_at
        and each.running_since is None
        and each.next_run_at < patient.now - each.every_seconds * SECOND - 5 * MINUTE
    ]
    if late and alive.get("scheduler"):
        return Trouble(
            text=f"{', '.join(each.name for each in late)} should have run"
            f" {(patient.now - min(each.next_run_at or 0 for each in late)) // MINUTE} minutes ago",
            remedy="bullpen restart scheduler",
        )
    return FINE


@check("queue.on_hold", Severity.WARNING, Needs.SCHEMA)
def on_hold(patient: Patient) -> Trouble | Said:
    """Nothing goes out and nothing comes due, as after a backup was restored."""
    with patient.store.read() as tx:
        hold = find_hold(tx)
    if hold is None:
        return FINE
    return Trouble(
        text=f"nothing goes out and nothing comes due until you let it go: {hold.reason[:200]}",
        remedy="bullpen db let-go --dry-run shows what waits; bullpen db let-go",
    )


CHECKS = (on_hold, stale_leases, dead_letters, held, lane_paused, unattended, upkeep)
