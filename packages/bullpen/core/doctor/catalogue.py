"""All checks, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Iterable

from bullpen.core.doctor import (
    agents,
    backups,
    config,
    database,
    files,
    machine,
    network,
    plugins,
    providers,
    queue,
    schedules,
    secrets,
    services,
)
from bullpen.core.doctor.check import Check

ALL_CHECKS: tuple[Check, ...] = (
    *config.SETTINGS_CHECKS,
    *files.CHECKS,
    *database.DATABASE_CHECKS,
    *machine.MACHINE_CHECKS,
    *services.CHECKS,
    *network.CHECKS,
    *queue.CHECKS,
    *providers.CHECKS,
    *agents.AGENT_CHECKS,
    *schedules.SCHEDULE_CHECKS,
    *secrets.CHECKS,
    *plugins.PLUGIN_CHECKS,
    *backups.BACKUP_CHECKS,
)


def select_checks(names: Iterable[str]) -> list[Check]:
    """The checks of these ids, and those whose ids begin so; all of them for none."""
    wanted = tuple(names)
    return [each for each in ALL_CHECKS if not wanted or matches(each, wanted)]


def matches(check: Check, names: tuple[str, ...]) -> bool:
    """Whether one of the names is the check's, or the beginning of it up to a dot."""
    return any(check.id == name or check.id.startswith(f"{name.rstrip('.')}.") for name in names)
