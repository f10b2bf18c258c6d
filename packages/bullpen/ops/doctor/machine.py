"""Checks of the machine and of the configuration."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from sqlalchemy import func, select, text

from bullpen.core.clock import SECOND
from bullpen.core.models import EVENTS, SYSTEM_AGENTS, WORKERS
from bullpen.core.settings.parse import SETTINGS_FILE
from bullpen.core.store.sqlite import SqliteStore
from bullpen.core.store.statement import Statement
from bullpen.ops.doctor.check import PASSED, Needs, Problem, Severity, Verdict, check, skipped
from bullpen.ops.doctor.installation import Installation
from bullpen.ops.services.settings_in_force import services_with_old_settings

MAX_SETTINGS_SHOWN = 3


@check("settings.bad", Severity.CRITICAL)
def invalid_settings(installation: Installation) -> Problem | Verdict:
    """Settings are invalid; their defaults apply."""
    found = [each for each in installation.problems if not each.warning]
    if not found:
        return PASSED
    return Problem(
        text="; ".join(str(each) for each in found[:MAX_SETTINGS_SHOWN]),
        remedy=found[0].hint or f"Edit {installation.home / SETTINGS_FILE}.",
    )


@check("settings.odd", Severity.WARNING)
def unknown_settings(installation: Installation) -> Problem | Verdict:
    """The settings contain unknown names."""
    found = [each for each in installation.problems if each.warning]
    if not found:
        return PASSED
    return Problem(
        text="; ".join(str(each) for each in found[:MAX_SETTINGS_SHOWN]),
        remedy=found[0].hint or "bullpen config list shows all settings.",
    )


@check("settings.not_in_force", Severity.INFO)
def settings_not_in_force(installation: Installation) -> Problem | Verdict:
    """Services started before a change of their settings and use the old ones."""
    if installation.services is None:
        return skipped("Bullpen is not running")
    try:
        changed = installation.home.joinpath(SETTINGS_FILE).stat().st_mtime
    except OSError:
        return PASSED
    old = [
        each["name"]
        for each in installation.services
        if each["pid"] and each["started_at"] < (changed - 1) * SECOND
    ]
    old = services_with_old_settings(installation.settings, old)
    if not old:
        return PASSED
    return Problem(
        text=f"{SETTINGS_FILE} was changed after the start of {', '.join(old)}",
        remedy=f"bullpen restart {' '.join(old)}",
    )


SETTINGS_CHECKS = (invalid_settings, unknown_settings, settings_not_in_force)


LOW_BYTES, CRITICAL_BYTES = 1 << 30, 100 << 20
MIN_FREE_FILES = 1000
"""With fewer free inodes, the disk counts as full."""
CLOCK_TOLERANCE_MS = 5 * SECOND

NEWEST_EVENT: Statement[tuple[int | None]] = Statement(
    lambda: select(EVENTS.c.created_at).order_by(EVENTS.c.id.desc()).limit(1)
)
LAST_LIVENESS: Statement[tuple[int | None]] = Statement(
    lambda: select(func.max(WORKERS.c.heartbeat_at))
)
LAST_JOB_RUN: Statement[tuple[int | None]] = Statement(
    lambda: select(func.max(SYSTEM_AGENTS.c.last_run_at))
)
SERVER_TIME: Statement[tuple[int]] = Statement(
    lambda: text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)")
)


@check("disk.space", Severity.WARNING)
def disk_space(installation: Installation) -> Problem | Verdict:
    """The disk of the home, the workspace or temporary files is almost full."""
    settings = installation.settings
    places = (settings.home, settings.workspace, Path(tempfile.gettempdir()))
    least = min((_free_space(each), str(each)) for each in map(_nearest_existing, places))
    (room, files), place = least
    if room >= LOW_BYTES and files >= MIN_FREE_FILES:
        return Verdict(text=f"{room >> 30} GiB free")
    left = f"{room >> 20} MiB" if room < LOW_BYTES else f"{files} inodes"
    return Problem(
        text=f"only {left} free at {place}",
        remedy="Free some space, or move the home. With a full disk, Bullpen refuses messages.",
        severity=Severity.CRITICAL if room < CRITICAL_BYTES else None,
    )


def _nearest_existing(path: Path) -> Path:
    """The path, or the nearest directory above it that exists."""
    return next((each for each in (path, *path.parents) if each.exists()), Path("/"))


def _free_space(path: Path) -> tuple[int, int]:
    found = os.statvfs(path)
    # Some file systems have no limit on inodes, and report 0.
    return found.f_bavail * found.f_frsize, found.f_favail if found.f_files else MIN_FREE_FILES


@check("clock.back", Severity.WARNING, Needs.SCHEMA)
def clock_set_back(installation: Installation) -> Problem | Verdict:
    """The clock was set back; stored times are in the future."""
    with installation.store.read() as tx:
        rows = [tx.one(each, {}) for each in (NEWEST_EVENT, LAST_LIVENESS, LAST_JOB_RUN)]
    latest = max((row[0] or 0 for row in rows if row is not None), default=0)
    ahead = latest - installation.now
    if ahead <= CLOCK_TOLERANCE_MS:
        return PASSED
    return Problem(
        text=f"the newest record is {ahead // SECOND} s in the future: the clock was set back,"
        " or another machine's clock is wrong. Leases, delays and schedules are late until then",
        remedy="Set the clock (timedatectl set-ntp true); then bullpen restart",
    )


@check("clock.skew", Severity.WARNING, Needs.DATABASE)
def clock_skew(installation: Installation) -> Problem | Verdict:
    """The clocks of this machine and of the database server differ."""
    if isinstance(installation.store, SqliteStore):
        return skipped("the database is on this machine")
    with installation.store.read() as tx:
        row = tx.one(SERVER_TIME, {})
        here = tx.now
    apart = 0 if row is None else row[0] - here
    if abs(apart) <= CLOCK_TOLERANCE_MS:
        return PASSED
    return Problem(
        text=f"the clocks of this machine and of the database server differ by"
        f" {abs(apart) // SECOND} s",
        remedy="Synchronise both with a time server (timedatectl set-ntp true).",
    )


MACHINE_CHECKS = (disk_space, clock_set_back, clock_skew)
