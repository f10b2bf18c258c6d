"""Imported by a command before it begins: no limit of the doctor's is ever reached.

What it says of a home must not depend on how much else this machine has to do. Tests of what hangs
go without.
"""

from __future__ import annotations

from bullpen.cli import doctor
from bullpen.ops.doctor import database, examine, installation, providers, services
from bullpen.ops.services import supervisor

LONG = 60

installation.OPEN_SECONDS = installation.ANSWER_SECONDS = services.ANSWER_SECONDS = LONG
supervisor.ANSWER_SECONDS = LONG
database.QUICK_SECONDS = providers.VERSION_SECONDS = doctor.BUSY_SECONDS = LONG
examine._Job.late = False  # type: ignore[assignment, method-assign]
