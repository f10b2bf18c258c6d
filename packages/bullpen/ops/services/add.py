"""Add services to a running supervisor: channels that were set up since it started."""

from __future__ import annotations

from bullpen.core.errors import ServiceFailed
from bullpen.core.registry import CHANNELS, ChannelInfo
from bullpen.core.settings import Settings
from bullpen.ops.services.programs import (
    add_program,
    programs_set_up,
    write_channel_programs,
)
from bullpen.ops.services.supervisor import CORE_SERVICES, Supervisor


def add_new_services(settings: Settings, supervisor: Supervisor) -> list[str]:
    """Start each channel that is set up and that the supervisor does not have; returns the names.

    The caller holds the start lock.
    """
    write_channel_programs(settings)
    known = CORE_SERVICES.union(each["name"] for each in supervisor.services())
    new = [each for each in programs_set_up(settings) if each.name not in known]
    for each in new:
        add_program(settings, each)
    names = [each.name for each in new]
    if names:
        supervisor.add(names)
    return names


def require_set_up(settings: Settings, name: str) -> None:
    """Refuse the service of a channel whose required settings are not set."""
    info = CHANNELS.find(name)
    if isinstance(info, ChannelInfo) and (missing := info.missing(settings.account(name))):
        raise ServiceFailed(
            f"{name} is not set up: {name}.{missing[0]} is not set",
            hint=f"Run: bullpen config set {name}.{missing[0]}",
        )
