"""Checks of the settings: what in them does not count, or not yet."""

from __future__ import annotations

from bullpen.core.clock import SECOND
from bullpen.core.doctor.check import PASSED, Problem, Severity, Verdict, check, skipped
from bullpen.core.doctor.patient import Installation
from bullpen.core.settings_text import SETTINGS_FILE

MAX_SETTINGS_SHOWN = 3


@check("settings.bad", Severity.CRITICAL)
def invalid_settings(patient: Installation) -> Problem | Verdict:
    """Settings that cannot be read; their defaults count instead."""
    found = [each for each in patient.problems if not each.warning]
    if not found:
        return PASSED
    return Problem(
        text="; ".join(str(each) for each in found[:MAX_SETTINGS_SHOWN]),
        remedy=found[0].hint or f"Correct {patient.home / SETTINGS_FILE}.",
    )


@check("settings.odd", Severity.WARNING)
def unknown_settings(patient: Installation) -> Problem | Verdict:
    """Names in the settings that no setting has."""
    found = [each for each in patient.problems if each.warning]
    if not found:
        return PASSED
    return Problem(
        text="; ".join(str(each) for each in found[:MAX_SETTINGS_SHOWN]),
        remedy=found[0].hint or "bullpen config list shows all settings",
    )


@check("settings.not_in_force", Severity.INFO)
def settings_not_in_force(patient: Installation) -> Problem | Verdict:
    """The settings were changed after services began: these have the old ones."""
    if patient.services is None:
        return skipped("no service runs")
    try:
        changed = patient.home.joinpath(SETTINGS_FILE).stat().st_mtime
    except OSError:
        return PASSED
    now = patient.now / SECOND
    old = [
        each["name"]
        for each in patient.services
        if each["pid"] and now - each["seconds"] < changed - 1
    ]
    if not old:
        return PASSED
    return Problem(
        text=f"{SETTINGS_FILE} was changed after {', '.join(old)} began",
        remedy=f"bullpen restart {' '.join(old)}",
    )


SETTINGS_CHECKS = (invalid_settings, unknown_settings, settings_not_in_force)
