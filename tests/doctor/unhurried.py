"""Imported by a command before it begins: no limit of the doctor's is ever reached.

What it says of a home must not depend on how much else this machine has to do. Tests of what hangs
go without.
"""

from __future__ import annotations

from bullpen.cli.doctor import examination
from bullpen.core.doctor import database, examine, patient, providers, services
from bullpen.core.services import supervisor

LONG = 60

patient.OPEN_SECONDS = patient.ANSWER_SECONDS = services.ANSWER_SECONDS = LONG
supervisor.ANSWER_SECONDS = LONG
database.QUICK_SECONDS = providers.VERSION_SECONDS = examination.BUSY_SECONDS = LONG
examine._Job.late = False  # type: ignore[assignment, method-assign]
