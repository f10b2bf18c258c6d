"""Checks of backups: is there one, how old is it, and does it still lie there."""

from __future__ import annotations

from sqlalchemy import select

from bullpen.core.backup.last import last_backup
from bullpen.core.clock import DAY
from bullpen.core.doctor.check import FINE, Needs, Said, Severity, Trouble, check, skipped
from bullpen.core.doctor.patient import Patient
from bullpen.core.models import AGENTS
from bullpen.core.store.statement import Statement

OLD = 7 * DAY

FIRST: Statement[tuple[int]] = Statement(
    lambda: select(AGENTS.c.created_at).order_by(AGENTS.c.created_at).limit(1)
)
MAKE = "bullpen db backup"


@check("backup.none", Severity.WARNING, Needs.SCHEMA)
def none(patient: Patient) -> Trouble | Said:
    """There is no backup; a warning once there is a week's work to lose."""
    if last_backup(patient.settings) is not None:
        return FINE
    with patient.store.read() as tx:
        first = tx.one(FIRST, {})
    age = 0 if first is None else patient.now - first[0]
    return Trouble(
        text="there is no backup" + ("" if age > OLD else " yet"),
        remedy=MAKE,
        severity=None if age > OLD else Severity.INFO,
    )


@check("backup.stale", Severity.WARNING)
def stale(patient: Patient) -> Trouble | Said:
    """The last backup is over a week old."""
    last = last_backup(patient.settings)
    if last is None:
        return skipped("there is none")
    age = patient.now - last.made_at
    if age <= OLD:
        return FINE
    return Trouble(text=f"the last backup is {age // DAY} days old", remedy=MAKE)


@check("backup.gone", Severity.INFO)
def gone(patient: Patient) -> Trouble | Said:
    """The last backup does not lie any more where it was written."""
    last = last_backup(patient.settings)
    if last is None:
        return skipped("there is none")
    if last.there:
        return FINE
    return Trouble(
        text=f"the last backup is not at {last.path} any more",
        remedy=f"Connect the disk that it is on, or make another: {MAKE}",
    )


CHECKS = (none, stale, gone)
