"""Checks of agents, schedules and heartbeats."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote

from bullpen.core.clock import MINUTE
from bullpen.core.heartbeats.manage import list_heartbeats
from bullpen.core.heartbeats.model import HeartbeatState
from bullpen.core.outbox.hold import find_hold
from bullpen.core.roster.accounts import UnusableAccount, closed_directory, find_account
from bullpen.core.roster.agents import ECHO, HTTP, Agent, Permission, Reach, Sandbox, list_agents
from bullpen.core.roster.programs import BUBBLEWRAP
from bullpen.core.schedules.model import ScheduleState, list_schedules
from bullpen.core.text import format_count
from bullpen.ops.doctor.check import PASSED, Fix, Needs, Problem, Severity, Verdict, check, skipped
from bullpen.ops.doctor.installation import Installation

MAX_AGENTS_SHOWN = 4


def _agents(installation: Installation) -> list[Agent]:
    with installation.store.read() as tx:
        return list_agents(tx)


def _names(agents: list[Agent]) -> str:
    more = f" and {len(agents) - MAX_AGENTS_SHOWN} more" if len(agents) > MAX_AGENTS_SHOWN else ""
    return ", ".join(f"@{each.id}" for each in agents[:MAX_AGENTS_SHOWN]) + more


@check("agent.default_missing", Severity.WARNING, Needs.SCHEMA)
def default_missing(installation: Installation) -> Problem | Verdict:
    """The default agent, which answers messages without an @name, does not exist."""
    agents, name = _agents(installation), installation.settings.default_agent
    if any(each.id == name for each in agents):
        return PASSED
    return Problem(
        text=f"the default agent {name} does not exist; it answers messages without an @name",
        remedy=f"bullpen up creates it; or: bullpen config set default_agent {agents[0].id}"
        if agents
        else "bullpen up",
        severity=None if agents else Severity.INFO,
    )


@check("agent.skip_permissions", Severity.WARNING, Needs.SCHEMA)
def skip_permissions(installation: Installation) -> Problem | Verdict:
    """Agents have full permissions on this machine; their provider's own checks are off."""
    full = [
        each
        for each in _agents(installation)
        if each.permission is Permission.FULL and each.sandbox is Sandbox.NONE
    ]
    if not full:
        return PASSED
    root = ", and as root" if os.geteuid() == 0 else ""
    return Problem(
        text=f"{_names(full)} may do everything that you may{root}, without asking; anyone who"
        " writes to them can use that",
        remedy=f"bullpen agent set {full[0].id} --permission edit, or --sandbox bubblewrap",
    )


@check("agent.sandbox_broken", Severity.WARNING, Needs.SCHEMA)
def sandbox_broken(installation: Installation) -> Problem | Verdict:
    """The sandbox of an agent does not work on this machine; the agent's runs fail."""
    agents = _agents(installation)
    boxed = [each for each in agents if each.sandbox is Sandbox.BUBBLEWRAP]
    if boxed and (problem := BUBBLEWRAP.problem()):
        return Problem(
            text=f"{_names(boxed)} cannot run: {problem}",
            remedy="apt-get install bubblewrap, and allow unprivileged user namespaces; or: "
            f"bullpen agent set {boxed[0].id} --sandbox none",
        )
    for each in agents:
        if each.sandbox is Sandbox.USER and (problem := _account_problem(installation, each)):
            return Problem(
                text=f"@{each.id} cannot run: {problem}",
                remedy="useradd -m ACCOUNT, bullpen config set sandbox_user ACCOUNT, and run "
                f"Bullpen as root; or: bullpen agent set {each.id} --sandbox bubblewrap",
            )
    return PASSED


def _account_problem(installation: Installation, agent: Agent) -> str:
    """The reason why an agent cannot run as its account; empty if it can."""
    try:
        account = find_account(installation.settings, agent.id)
        closed = closed_directory(installation.settings.workspace.absolute(), account)
    except (UnusableAccount, OSError) as error:
        return str(error)
    return "" if closed is None else f"{account.name} may not enter {closed}: chmod o+x {closed}"


@check("agent.wide_reach", Severity.INFO, Needs.SCHEMA)
def wide_reach(installation: Installation) -> Problem | Verdict:
    """Agents may read the history of all people, and write to any address."""
    wide = [each for each in _agents(installation) if each.reach is Reach.ALL]
    if not wide:
        return PASSED
    return Problem(
        text=f"{_names(wide)} may read the history of all people, and write to any address; "
        "anyone who writes to them can use that",
        remedy=f"bullpen agent set {wide[0].id} --reach conversation",
    )


@check("agent.workspace_is_home", Severity.WARNING, Needs.SCHEMA)
def workspace_is_home(installation: Installation) -> Problem | Verdict:
    """The directory of an agent contains all of your files, or Bullpen's home."""
    own = _real(Path(installation.environ.get("HOME") or Path.home()))
    home = _real(installation.home)
    wide: list[str] = []
    worst = Severity.WARNING
    places = [(f"@{each.id}", each.directory) for each in _agents(installation) if each.directory]
    for who, directory in (*places, ("the workspace", str(installation.settings.workspace))):
        place = _real(Path(directory))
        if home.is_relative_to(place):
            worst = Severity.CRITICAL
            wide.append(f"{who} ({directory}, which contains Bullpen's home)")
        elif own.is_relative_to(place):
            wide.append(f"{who} ({directory})")
    if not wide:
        return PASSED
    return Problem(
        text=f"working directory contains all of your files: {', '.join(wide[:MAX_AGENTS_SHOWN])}",
        remedy="bullpen agent set AGENT --directory PROJECT",
        severity=worst,
    )


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path.expanduser()))


@check("agent.directory_missing", Severity.WARNING, Needs.SCHEMA)
def directory_missing(installation: Installation) -> Problem | Verdict:
    """The working directory of an agent does not exist."""
    gone = [
        each
        for each in _agents(installation)
        if each.directory
        and each.provider not in (ECHO, HTTP)
        and not Path(each.directory).is_dir()
    ]
    if not gone:
        return PASSED
    directories = list(dict.fromkeys(Path(each.directory) for each in gone))
    # A file of that name cannot be replaced by a directory.
    absent = [each for each in directories if not os.path.lexists(each)]

    def apply() -> None:
        for each in absent:
            each.mkdir(mode=0o700, parents=True, exist_ok=True)

    return Problem(
        text=f"{_names(gone)} cannot run: {directories[0]} is not a directory",
        remedy=f"mkdir -p {quote(str(directories[0]))}, or"
        f" bullpen agent set {gone[0].id} --directory PATH",
        fix=Fix(steps=tuple(f"mkdir -p -m 700 {quote(str(each))}" for each in absent), apply=apply)
        if absent
        else None,
    )


@check("budget.none", Severity.INFO, Needs.SCHEMA)
def no_budget(installation: Installation) -> Problem | Verdict:
    """There is no limit on the cost of a conversation."""
    paid = [each for each in _agents(installation) if each.provider not in (ECHO, HTTP)]
    if not paid or installation.settings.max_cost > 0:
        return PASSED
    return Problem(
        text=f"there is no limit on the cost of a conversation with {_names(paid)} (max_cost is 0)",
        remedy="bullpen config set max_cost 5",
    )


AGENT_CHECKS = (
    *(default_missing, skip_permissions, sandbox_broken, wide_reach, workspace_is_home),
    *(directory_missing, no_budget),
)


LATE_AFTER_MS = 5 * MINUTE
BY_HAND = "paused by hand"
REASON_CHARS = 200


@check("schedule.paused", Severity.WARNING, Needs.SCHEMA)
def schedules_paused(installation: Installation) -> Problem | Verdict:
    """Bullpen paused a schedule because of a failure."""
    with installation.store.read() as tx:
        found = list_schedules(tx)
    stopped = [
        each
        for each in found
        if each.state is ScheduleState.PAUSED and each.reason and each.reason != BY_HAND
    ]
    if not stopped:
        return PASSED
    first = stopped[0]
    return Problem(
        text=f"{format_count(len(stopped), 'schedule is', 'schedules are')} paused. "
        f"{first.label or first.id}: {(first.reason or '')[:REASON_CHARS]}",
        remedy=f"After fixing this, run: bullpen schedule resume {quote(first.label or first.id)}",
    )


@check("schedule.late", Severity.WARNING, Needs.SCHEMA)
def schedules_late(installation: Installation) -> Problem | Verdict:
    """Schedules have been due for minutes and did not fire."""
    with installation.store.read() as tx:
        found, hold = list_schedules(tx), find_hold(tx)
    if hold is not None:
        return skipped("schedules are on hold (queue.on_hold)")
    due = [each.due_at for each in found if each.state is ScheduleState.ACTIVE and each.due_at]
    overdue = [each for each in due if each < installation.now - LATE_AFTER_MS]
    if not overdue:
        return PASSED
    minutes = (installation.now - min(overdue)) // MINUTE
    return Problem(
        text=f"{format_count(len(overdue), 'schedule is', 'schedules are')} overdue, by up to"
        f" {format_count(minutes, 'minute')}",
        remedy="bullpen up; if Bullpen runs already: bullpen logs scheduler",
    )


@check("heartbeat.paused", Severity.WARNING, Needs.SCHEMA)
def heartbeat_paused(installation: Installation) -> Problem | Verdict:
    """Bullpen paused a heartbeat, because it failed or had nothing to report."""
    with installation.store.read() as tx:
        found = list_heartbeats(tx)
    stopped = [each for each in found if each.state is HeartbeatState.PAUSED]
    if not stopped:
        return PASSED
    first = stopped[0]
    return Problem(
        text=f"the heartbeat of {', '.join(f'@{each.agent}' for each in stopped[:4])} is paused:"
        f" {(first.reason or '')[:REASON_CHARS]}",
        remedy=f"bullpen heartbeat on {first.agent}",
    )


SCHEDULE_CHECKS = (schedules_paused, schedules_late, heartbeat_paused)
