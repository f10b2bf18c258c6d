"""All checks, in the order in which they are told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue

from bullpen.core.errors import BullpenError
from bullpen.core.logs import LogFormatter
from bullpen.ops.doctor import (
    agents,
    database,
    home,
    machine,
    network,
    providers,
    queue,
    secrets,
    services,
)
from bullpen.ops.doctor.check import Check, CheckState, Finding, Needs, Problem, Verdict
from bullpen.ops.doctor.installation import Installation

ALL_CHECKS: tuple[Check, ...] = (
    *machine.SETTINGS_CHECKS,
    *home.CHECKS,
    *database.DATABASE_CHECKS,
    *machine.MACHINE_CHECKS,
    *services.CHECKS,
    *network.CHECKS,
    *queue.CHECKS,
    *providers.CHECKS,
    *agents.AGENT_CHECKS,
    *agents.SCHEDULE_CHECKS,
    *secrets.CHECKS,
    *agents.PLUGIN_CHECKS,
    *database.BACKUP_CHECKS,
)


def select_checks(names: Iterable[str]) -> list[Check]:
    """The checks of these ids, and those whose ids begin so; all of them for none."""
    wanted = tuple(names)
    return [each for each in ALL_CHECKS if not wanted or matches(each, wanted)]


def matches(check: Check, names: tuple[str, ...]) -> bool:
    """Whether one of the names is the check's, or the beginning of it up to a dot."""
    return any(check.id == name or check.id.startswith(f"{name.rstrip('.')}.") for name in names)


THREADS = 8
POLL_SECONDS = 0.02


@dataclass(slots=True)
class _Job:
    """One check under way."""

    check: Check
    began: float | None = None
    finding: Finding | None = None

    @property
    def late(self) -> bool:
        return self.began is not None and time.monotonic() - self.began > self.check.seconds


def run_checks(patient: Installation, checks: Sequence[Check]) -> Iterator[Finding]:
    """What comes of each check, in the order in which they end."""
    hide = LogFormatter(patient.secrets).redact
    jobs = [_Job(each) for each in checks]
    waiting: SimpleQueue[_Job] = SimpleQueue()
    for job in jobs:
        waiting.put(job)
    for _ in range(min(THREADS, len(jobs))):
        _begin(patient, waiting)
    while jobs:
        for job in [each for each in jobs if each.finding is not None or each.late]:
            jobs.remove(job)
            if job.finding is None:  # its thread is left to itself, and another takes its place
                _begin(patient, waiting)
            finding = job.finding or _timed_out(job.check)
            yield replace(finding, text=hide(finding.text), remedy=hide(finding.remedy))
        time.sleep(POLL_SECONDS)


def _begin(patient: Installation, waiting: SimpleQueue[_Job]) -> None:
    def work() -> None:
        while True:
            try:
                job = waiting.get_nowait()
            except Empty:
                return
            job.began = time.monotonic()
            job.finding = run_check(patient, job.check)

    # A daemon, for nobody can end a thread that hangs.
    threading.Thread(target=work, name="check", daemon=True).start()


def run_check(patient: Installation, check: Check) -> Finding:
    """Make one check; one that cannot be made says so."""
    said = _skip_reason(patient, check) or _call_check(patient, check)
    if isinstance(said, Problem):
        severity = said.severity or check.severity
        return Finding(
            id=check.id,
            severity=severity,
            state=CheckState.FOUND,
            text=said.text,
            remedy=said.remedy,
            fix=said.fix,
        )
    return Finding(id=check.id, severity=check.severity, state=said.state, text=said.text)


def _call_check(patient: Installation, check: Check) -> Problem | Verdict:
    try:
        return check.look(patient)
    except BullpenError as error:
        return Verdict(CheckState.UNKNOWN, f"it cannot be told: {error}")
    except Exception as error:  # whatever is broken here, the other checks are made
        return Verdict(CheckState.UNKNOWN, f"it cannot be told: {type(error).__name__}: {error}")


def _skip_reason(patient: Installation, check: Check) -> Verdict | None:
    """Why it is not even begun; None if it is."""
    database = patient.database
    if check.deep and not patient.deep:
        return Verdict(CheckState.SKIPPED, "only with --deep")
    if check.needs is Needs.NOTHING:
        return None
    if database.missing:
        return Verdict(CheckState.SKIPPED, "there is no database yet")
    if database.store is None:
        return Verdict(CheckState.UNKNOWN, "the database does not answer")
    if check.needs is Needs.SCHEMA and not database.current:
        return Verdict(CheckState.UNKNOWN, "the database is of another version")
    return None


def _timed_out(check: Check) -> Finding:
    return Finding(
        id=check.id,
        severity=check.severity,
        state=CheckState.UNKNOWN,
        text=f"it did not end within {check.seconds:g} s",
    )
