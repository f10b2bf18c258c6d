"""Checks of backups: is there one, how old is it, and does it still lie there."""

from __future__ import annotations

from sqlalchemy import select

from bullpen.core.backup.last import last_backup
from bullpen.core.clock import DAY
from bullpen.core.doctor.check import PASSED, Needs, Problem, Severity, Verdict, check, skipped
from bullpen.core.doctor.patient import Installation
from bullpen.core.models import AGENTS
from bullpen.core.store.statement import Statement

STALE_AFTER_MS = 7 * DAY

FIRST_AGENT: Statement[tuple[int]] = Statement(
    lambda: select(AGENTS.c.created_at).order_by(AGENTS.c.created_at).limit(1)
)
BACKUP_COMMAND = "bullpen db backup"


@check("backup.none", Severity.WARNING, Needs.SCHEMA)
def no_backup(patient: Installation) -> Problem | Verdict:
    """There is no backup; a warning once there is a week's work to lose."""
    if last_backup(patient.settings) is not None:
        return PASSED
    with patient.store.read() as tx:
        first = tx.one(FIRST_AGENT, {})
    age = 0 if first is None else patient.now - first[0]
    return Problem(
        text="there is no backup" + ("" if age > STALE_AFTER_MS else " yet"),
        remedy=BACKUP_COMMAND,
        severity=None if age > STALE_AFTER_MS else Severity.INFO,
    )


@check("backup.stale", Severity.WARNING)
def backup_stale(patient: Installation) -> Problem | Verdict:
    """The last backup is over a week old."""
    last = last_backup(patient.settings)
    if last is None:
        return skipped("there is none")
    age = patient.now - last.made_at
    if age <= STALE_AFTER_MS:
        return PASSED
    return Problem(text=f"the last backup is {age // DAY} days old", remedy=BACKUP_COMMAND)


@check("backup.gone", Severity.INFO)
def backup_gone(patient: Installation) -> Problem | Verdict:
    """The last backup does not lie any more where it was written."""
    last = last_backup(patient.settings)
    if last is None:
        return skipped("there is none")
    if last.there:
        return PASSED
    return Problem(
        text=f"the last backup is not at {last.path} any more",
        remedy=f"Connect the disk that it is on, or make another: {BACKUP_COMMAND}",
    )


BACKUP_CHECKS = (no_backup, backup_stale, backup_gone)
