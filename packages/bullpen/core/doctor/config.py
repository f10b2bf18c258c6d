"""Checks of the settings: what in them does not count, or not yet."""

from __future__ import annotations

from bullpen.core.clock import SECOND
from bullpen.core.doctor.check import FINE, Said, Severity, Trouble, check, skipped
from bullpen.core.doctor.patient import Patient
from bullpen.core.settings_text import FILE

SHOWN = 3


@check("settings.bad", Severity.CRITICAL)
def bad(patient: Patient) -> Trouble | Said:
    """Settings that cannot be read; their defaults count instead."""
    found = [each for each in patient.problems if not each.warning]
    if not found:
        return FINE
    return Trouble(
        text="; ".join(str(each) for each in found[:SHOWN]),
        remedy=found[0].hint or f"Correct {patient.home / FILE}.",
    )


@check("settings.odd", Severity.WARNING)
def odd(patient: Patient) -> Trouble | Said:
    """Names in the settings that no setting has."""
    found = [each for each in patient.problems if each.warning]
    if not found:
        return FINE
    return Trouble(
        text="; ".join(str(each) for each in found[:SHOWN]),
        remedy=found[0].hint or "bullpen config list shows all settings",
    )


@check("settings.not_in_force", Severity.INFO)
def not_in_force(patient: Patient) -> Trouble | Said:
    """The settings were changed after services began: these have the old ones."""
    if patient.services is None:
        return skipped("no service runs")
    try:
        changed = patient.home.joinpath(FILE).stat().st_mtime
    except OSError:
        return FINE
    now = patient.now / SECOND
    old = [
        each["name"]
        for each in patient.services
        if each["pid"] and now - each["seconds"] < changed - 1
    ]
    if not old:
        return FINE
    return Trouble(
        text=f"{FILE} was changed after {', '.join(old)} began",
        remedy=f"bullpen restart {' '.join(old)}",
    )


CHECKS = (bad, odd, not_in_force)
