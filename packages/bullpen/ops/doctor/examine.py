"""Run the checks of an installation in parallel, each with a time limit."""

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
    channels,
    database,
    home,
    machine,
    network,
    plugins,
    providers,
    queue,
    reports,
    secrets,
    services,
)
from bullpen.ops.doctor.check import Check, CheckState, Finding, Needs, Problem, Verdict
from bullpen.ops.doctor.installation import Installation

THREADS = 8
POLL_SECONDS = 0.02

ALL_CHECKS: tuple[Check, ...] = (
    *machine.SETTINGS_CHECKS,
    *home.CHECKS,
    *database.DATABASE_CHECKS,
    *machine.MACHINE_CHECKS,
    *services.CHECKS,
    *network.CHECKS,
    *queue.CHECKS,
    *channels.CHECKS,
    *providers.CHECKS,
    *agents.AGENT_CHECKS,
    *agents.SCHEDULE_CHECKS,
    *reports.CHECKS,
    *secrets.CHECKS,
    *plugins.CHECKS,
    *database.BACKUP_CHECKS,
)
"""All checks, in the order of the report."""


def select_checks(names: Iterable[str]) -> list[Check]:
    """The checks with these ids or in these groups; all checks if no name is given."""
    wanted = tuple(names)
    return [each for each in ALL_CHECKS if not wanted or matches(each, wanted)]


def matches(check: Check, names: tuple[str, ...]) -> bool:
    """Whether one of the names is the id of the check, or its beginning up to a dot."""
    return any(check.id == name or check.id.startswith(f"{name.rstrip('.')}.") for name in names)


@dataclass(slots=True)
class _Job:
    """One running check."""

    check: Check
    began: float | None = None
    finding: Finding | None = None

    @property
    def late(self) -> bool:
        return self.began is not None and time.monotonic() - self.began > self.check.seconds


def run_checks(installation: Installation, checks: Sequence[Check]) -> Iterator[Finding]:
    """Run these checks; yields each finding as soon as it is available."""
    hide = LogFormatter(installation.secrets).redact
    jobs = [_Job(each) for each in checks]
    waiting: SimpleQueue[_Job] = SimpleQueue()
    for job in jobs:
        waiting.put(job)
    for _ in range(min(THREADS, len(jobs))):
        _begin(installation, waiting)
    while jobs:
        for job in [each for each in jobs if each.finding is not None or each.late]:
            jobs.remove(job)
            if job.finding is None:  # a new thread replaces the hanging one
                _begin(installation, waiting)
            finding = job.finding or _timed_out(job.check)
            yield replace(finding, text=hide(finding.text), remedy=hide(finding.remedy))
        time.sleep(POLL_SECONDS)


def _begin(installation: Installation, waiting: SimpleQueue[_Job]) -> None:
    def work() -> None:
        while True:
            try:
                job = waiting.get_nowait()
            except Empty:
                return
            job.began = time.monotonic()
            job.finding = run_check(installation, job.check)

    # A daemon, because a thread that hangs cannot be ended.
    threading.Thread(target=work, name="check", daemon=True).start()


def run_check(installation: Installation, check: Check) -> Finding:
    """Run one check; a check that fails gives an unknown finding."""
    result = _skip_reason(installation, check) or _call_check(installation, check)
    if isinstance(result, Problem):
        return Finding(
            id=check.id,
            severity=result.severity or check.severity,
            state=CheckState.FOUND,
            text=result.text,
            remedy=result.remedy,
            fix=result.fix,
        )
    return Finding(id=check.id, severity=check.severity, state=result.state, text=result.text)


def _call_check(installation: Installation, check: Check) -> Problem | Verdict:
    try:
        return check.run(installation)
    except BullpenError as error:
        return Verdict(CheckState.UNKNOWN, f"the check failed: {error}")
    except Exception as error:  # a broken check must not stop the others
        return Verdict(CheckState.UNKNOWN, f"the check failed: {type(error).__name__}: {error}")


def _skip_reason(installation: Installation, check: Check) -> Verdict | None:
    """The verdict of a check that cannot be run here; None if it can."""
    database = installation.database
    if check.deep and not installation.deep:
        return Verdict(CheckState.SKIPPED, "only with --deep")
    if check.needs is Needs.NOTHING:
        return None
    if database.missing:
        return Verdict(CheckState.SKIPPED, "there is no database yet")
    if database.store is None:
        return Verdict(CheckState.UNKNOWN, "cannot connect to the database")
    if check.needs is Needs.SCHEMA and not database.current:
        return Verdict(CheckState.UNKNOWN, "the database has the schema of another version")
    return None


def _timed_out(check: Check) -> Finding:
    return Finding(
        id=check.id,
        severity=check.severity,
        state=CheckState.UNKNOWN,
        text=f"the check timed out after {check.seconds:g} s",
    )
