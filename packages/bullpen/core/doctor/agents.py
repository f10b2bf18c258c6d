"""Checks of the agents: what they may do on this machine, where they work, and what they cost."""

from __future__ import annotations

import os
from pathlib import Path

from bullpen.core.doctor.check import PASSED, Fix, Needs, Problem, Severity, Verdict, check
from bullpen.core.doctor.patient import Installation
from bullpen.core.roster.agent import ECHO, HTTP, Agent, Permission
from bullpen.core.roster.find import list_agents

MAX_AGENTS_SHOWN = 4


def _agents(patient: Installation) -> list[Agent]:
    with patient.store.read() as tx:
        return list_agents(tx)


def _names(agents: list[Agent]) -> str:
    more = f" and {len(agents) - MAX_AGENTS_SHOWN} more" if len(agents) > MAX_AGENTS_SHOWN else ""
    return ", ".join(f"@{each.id}" for each in agents[:MAX_AGENTS_SHOWN]) + more


@check("agent.default_missing", Severity.WARNING, Needs.SCHEMA)
def default_missing(patient: Installation) -> Problem | Verdict:
    """The agent is missing that answers what is addressed to nobody."""
    agents, name = _agents(patient), patient.settings.default_agent
    if any(each.id == name for each in agents):
        return PASSED
    return Problem(
        text=f"there is no agent {name}, which is to answer what is addressed to nobody",
        remedy=f"bullpen up makes it; or: bullpen config set default_agent {agents[0].id}"
        if agents
        else "bullpen up",
        severity=None if agents else Severity.INFO,
    )


@check("agent.skip_permissions", Severity.WARNING, Needs.SCHEMA)
def skip_permissions(patient: Installation) -> Problem | Verdict:
    """Agents may do everything on this machine: their provider's own checks are off."""
    full = [each for each in _agents(patient) if each.permission is Permission.FULL]
    if not full:
        return PASSED
    root = ", and as root" if os.geteuid() == 0 else ""
    return Problem(
        text=f"{_names(full)} may do everything that you may{root}, without asking: so may whoever"
        " writes to them",
        remedy=f"bullpen agent set {full[0].id} --permission edit",
    )


@check("agent.workspace_is_home", Severity.WARNING, Needs.SCHEMA)
def workspace_is_home(patient: Installation) -> Problem | Verdict:
    """Agents work in a directory that holds everything of yours, or of Bullpen."""
    own = _real(Path(patient.environ.get("HOME") or Path.home()))
    home = _real(patient.home)
    wide: list[str] = []
    worst = Severity.WARNING
    places = [(f"@{each.id}", each.directory) for each in _agents(patient) if each.directory]
    for who, directory in (*places, ("the workspace", str(patient.settings.workspace))):
        place = _real(Path(directory))
        if home.is_relative_to(place):
            worst = Severity.CRITICAL
            wide.append(f"{who} ({directory}, where Bullpen's own home lies)")
        elif own.is_relative_to(place):
            wide.append(f"{who} ({directory})")
    if not wide:
        return PASSED
    return Problem(
        text=f"works where all of your files are: {', '.join(wide[:MAX_AGENTS_SHOWN])}",
        remedy="bullpen agent set AGENT --directory ONE_PROJECT",
        severity=worst,
    )


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path.expanduser()))


@check("agent.directory_missing", Severity.WARNING, Needs.SCHEMA)
def directory_missing(patient: Installation) -> Problem | Verdict:
    """The directory is gone in which an agent is to work."""
    gone = [
        each
        for each in _agents(patient)
        if each.directory
        and each.provider not in (ECHO, HTTP)
        and not Path(each.directory).is_dir()
    ]
    if not gone:
        return PASSED
    directories = list(dict.fromkeys(Path(each.directory) for each in gone))
    # What is not a directory is in nobody's way to be made one.
    absent = [each for each in directories if not os.path.lexists(each)]

    def do() -> None:
        for each in absent:
            each.mkdir(mode=0o700, parents=True, exist_ok=True)

    return Problem(
        text=f"{_names(gone)} cannot work: {directories[0]} is no directory",
        remedy=f"mkdir -p {directories[0]}, or bullpen agent set {gone[0].id} --directory PLACE",
        fix=Fix(steps=tuple(f"mkdir -p -m 700 {each}" for each in absent), do=do)
        if absent
        else None,
    )


@check("budget.none", Severity.INFO, Needs.SCHEMA)
def no_budget(patient: Installation) -> Problem | Verdict:
    """Nothing limits what a conversation may cost."""
    paid = [each for each in _agents(patient) if each.provider not in (ECHO, HTTP)]
    if not paid or patient.settings.max_cost > 0:
        return PASSED
    return Problem(
        text=f"nothing limits what a conversation with {_names(paid)} may cost (max_cost is 0)",
        remedy="bullpen config set max_cost 5",
    )


AGENT_CHECKS = (default_missing, skip_permissions, workspace_is_home, directory_missing, no_budget)
