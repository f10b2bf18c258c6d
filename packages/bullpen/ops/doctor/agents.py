"""Checks of agents, schedules and plugins."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib.metadata import Distribution, entry_points
from pathlib import Path
from shlex import quote

from bullpen.core.clock import MINUTE
from bullpen.core.heartbeats.manage import list_heartbeats
from bullpen.core.heartbeats.model import HeartbeatState
from bullpen.core.outbox.hold import find_hold
from bullpen.core.registry import CHANNELS, PROVIDERS, REPORTS
from bullpen.core.roster.accounts import UnusableAccount, closed_directory, find_account
from bullpen.core.roster.agents import ECHO, HTTP, Agent, Permission, Reach, Sandbox, list_agents
from bullpen.core.roster.programs import BUBBLEWRAP
from bullpen.core.schedules.model import ScheduleState, list_schedules
from bullpen.ops.doctor.check import PASSED, Fix, Needs, Problem, Severity, Verdict, check, skipped
from bullpen.ops.doctor.home import OTHERS_WRITE_MASK, open_to_others
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
    """The agent is missing that answers what is addressed to nobody."""
    agents, name = _agents(installation), installation.settings.default_agent
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
def skip_permissions(installation: Installation) -> Problem | Verdict:
    """Agents may do everything on this machine: their provider's own checks are off."""
    full = [
        each
        for each in _agents(installation)
        if each.permission is Permission.FULL and each.sandbox is Sandbox.NONE
    ]
    if not full:
        return PASSED
    root = ", and as root" if os.geteuid() == 0 else ""
    return Problem(
        text=f"{_names(full)} may do everything that you may{root}, without asking: so may whoever"
        " writes to them",
        remedy=f"bullpen agent set {full[0].id} --permission edit, or --sandbox bubblewrap",
    )


@check("agent.sandbox_broken", Severity.WARNING, Needs.SCHEMA)
def sandbox_broken(installation: Installation) -> Problem | Verdict:
    """Agents have a sandbox that cannot be set up on this machine; their runs fail."""
    agents = _agents(installation)
    boxed = [each for each in agents if each.sandbox is Sandbox.BUBBLEWRAP]
    if boxed and (problem := BUBBLEWRAP.problem()):
        return Problem(
            text=f"{_names(boxed)} cannot run: {problem}",
            remedy="apt-get install bubblewrap, and permit unprivileged user namespaces; or: "
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
    """Why an agent cannot run as its account; empty if it can."""
    try:
        account = find_account(installation.settings, agent.id)
        closed = closed_directory(installation.settings.workspace.absolute(), account)
    except (UnusableAccount, OSError) as error:
        return str(error)
    return "" if closed is None else f"{account.name} may not pass {closed}: chmod o+x {closed}"


@check("agent.wide_reach", Severity.INFO, Needs.SCHEMA)
def wide_reach(installation: Installation) -> Problem | Verdict:
    """Agents may read everybody's history in their runs, and write to any address."""
    wide = [each for each in _agents(installation) if each.reach is Reach.ALL]
    if not wide:
        return PASSED
    return Problem(
        text=f"{_names(wide)} may read what everybody said, and write to any address: so may "
        "whoever writes to them",
        remedy=f"bullpen agent set {wide[0].id} --reach conversation",
    )


@check("agent.workspace_is_home", Severity.WARNING, Needs.SCHEMA)
def workspace_is_home(installation: Installation) -> Problem | Verdict:
    """Agents work in a directory that holds everything of yours, or of Bullpen."""
    own = _real(Path(installation.environ.get("HOME") or Path.home()))
    home = _real(installation.home)
    wide: list[str] = []
    worst = Severity.WARNING
    places = [(f"@{each.id}", each.directory) for each in _agents(installation) if each.directory]
    for who, directory in (*places, ("the workspace", str(installation.settings.workspace))):
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
def directory_missing(installation: Installation) -> Problem | Verdict:
    """The directory is gone in which an agent is to work."""
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
    # What is not a directory is in nobody's way to be made one.
    absent = [each for each in directories if not os.path.lexists(each)]

    def apply() -> None:
        for each in absent:
            each.mkdir(mode=0o700, parents=True, exist_ok=True)

    return Problem(
        text=f"{_names(gone)} cannot work: {directories[0]} is no directory",
        remedy=f"mkdir -p {quote(str(directories[0]))}, or"
        f" bullpen agent set {gone[0].id} --directory PLACE",
        fix=Fix(steps=tuple(f"mkdir -p -m 700 {quote(str(each))}" for each in absent), apply=apply)
        if absent
        else None,
    )


@check("budget.none", Severity.INFO, Needs.SCHEMA)
def no_budget(installation: Installation) -> Problem | Verdict:
    """Nothing limits what a conversation may cost."""
    paid = [each for each in _agents(installation) if each.provider not in (ECHO, HTTP)]
    if not paid or installation.settings.max_cost > 0:
        return PASSED
    return Problem(
        text=f"nothing limits what a conversation with {_names(paid)} may cost (max_cost is 0)",
        remedy="bullpen config set max_cost 5",
    )


AGENT_CHECKS = (
    *(default_missing, skip_permissions, sandbox_broken, wide_reach, workspace_is_home),
    *(directory_missing, no_budget),
)


GROUPS = ("bullpen.plugins", PROVIDERS.group, CHANNELS.group, REPORTS.group)
MAX_PLUGINS_SHOWN = 4


@check("plugin.unpinned", Severity.WARNING)
def unpinned(installation: Installation) -> Problem | Verdict:
    """A plugin can become another one without anybody installing it."""
    found = [*_files(installation), *_packages()]
    if not found:
        return PASSED
    return Problem(
        text=f"these can change by themselves: {', '.join(found[:MAX_PLUGINS_SHOWN])}",
        remedy="Take the rights of others away; copy what is linked; install packages by version"
        " and hash.",
        severity=Severity.CRITICAL if any("others" in each for each in found) else None,
    )


def _files(installation: Installation) -> Iterator[str]:
    directory = installation.home / "plugins"
    if not directory.is_dir():
        return
    mine = directory.stat().st_uid
    for each in sorted((*directory.glob("*.py"), *directory.glob("*/__init__.py"))):
        if each.name.startswith((".", "_")) and each.name != "__init__.py":
            continue
        real = Path(os.path.realpath(each))
        if open_to_others(real, OTHERS_WRITE_MASK) or real.stat().st_uid not in (mine, 0):
            yield f"{each.name} (others may write it)"
        elif not real.is_relative_to(os.path.realpath(directory)):
            yield f"{each.name} (a link to {real})"


def _packages() -> Iterator[str]:
    points = [each for group in GROUPS for each in entry_points(group=group)]
    for point in points:
        if point.dist is not None and (why := _why_unpinned(point.dist)):
            yield f"{point.dist.name} ({why})"


def _why_unpinned(package: Distribution) -> str:
    """Why an installed package is not fixed; empty if its version says what it is."""
    try:
        origin = json.loads(package.read_text("direct_url.json") or "{}")
    except ValueError:
        return "nobody can tell where it is from"
    if origin.get("dir_info", {}).get("editable"):
        return "it runs from a directory"
    archive = origin.get("archive_info")
    if archive is not None and not (archive.get("hash") or archive.get("hashes")):
        return "from an address, without a hash"
    return ""


PLUGIN_CHECKS = (unpinned,)


LATE_AFTER_MS = 5 * MINUTE
BY_HAND = "paused by hand"
REASON_CHARS = 200


@check("schedule.paused", Severity.WARNING, Needs.SCHEMA)
def schedules_paused(installation: Installation) -> Problem | Verdict:
    """Schedules that stopped for a reason other than a person's word."""
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
        text=f"{len(stopped)} schedules are paused, as {first.label or first.id}:"
        f" {(first.reason or '')[:REASON_CHARS]}",
        remedy=f"bullpen schedule resume {quote(first.label or first.id)}, when the reason is gone",
    )


@check("schedule.late", Severity.WARNING, Needs.SCHEMA)
def schedules_late(installation: Installation) -> Problem | Verdict:
    """Schedules are due for minutes, and nobody lets them fire."""
    with installation.store.read() as tx:
        found, hold = list_schedules(tx), find_hold(tx)
    if hold is not None:
        return skipped("nothing comes due until it is let go (queue.on_hold)")
    due = [each.due_at for each in found if each.state is ScheduleState.ACTIVE and each.due_at]
    overdue = [each for each in due if each < installation.now - LATE_AFTER_MS]
    if not overdue:
        return PASSED
    minutes = (installation.now - min(overdue)) // MINUTE
    return Problem(
        text=f"{len(overdue)} schedules are due and do not fire, one for {minutes} minutes",
        remedy="bullpen up; if it runs: bullpen logs scheduler",
    )


@check("heartbeat.paused", Severity.WARNING, Needs.SCHEMA)
def heartbeat_paused(installation: Installation) -> Problem | Verdict:
    """Heartbeats that Bullpen paused, for they failed or had nothing to say."""
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
