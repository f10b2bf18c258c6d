"""bullpen queue agents, pause and drain; agent pause and resume: lanes, by their agents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, read_transaction, write_transaction
from bullpen.cli.errors import UsageError
from bullpen.cli.options import Function, dry_run
from bullpen.cli.output import format_duration, format_state, one_line
from bullpen.cli.provider_setup import adopt_shell_path, setup_steps
from bullpen.core.inspect.lanes import get_lane
from bullpen.core.inspect.queue import LaneActivity, list_lane_activity
from bullpen.core.queue.lanes import drain_lane, pause_lane, resume_lane
from bullpen.core.roster.agents import get_agent, list_agents
from bullpen.core.settings import Settings
from bullpen.core.states import NO_REASON, LaneState
from bullpen.core.store.transaction import Transaction

LANES_HEADING = ("AGENT", "STATE", "PENDING", "OLDEST", "RUNNING", "REASON")
REASON_CHARS = 100


@command(tx="read", listing=True)
@click.option("--all", "everybody", is_flag=True, help="Include removed agents.")
def agents(tx: Transaction, everybody: bool) -> Result:
    """List agents with their state and messages.

    Shows the number of pending messages, the age of the oldest one, the running message and why
    an agent does not work. `--json` also has the order in which each agent takes its messages.

    \b
    Example:
      bullpen queue agents
    """
    lanes = [
        lane for lane in list_lane_activity(tx) if everybody or lane.state != LaneState.ARCHIVED
    ]
    return Result(
        lanes,
        rows=[LANES_HEADING, *(_lane_row(lane, tx.now) for lane in lanes)],
        empty="No agents yet. Next: bullpen agent add coder --provider claude",
        ids=(lane.agent for lane in lanes),
    )


def activity_cells(lane: LaneActivity, now: int) -> tuple[str, str, str]:
    """The age of the oldest pending message, the running one, and why nothing runs."""
    since = lane.waiting_since
    return (
        "" if since is None else format_duration(now - since),
        _running(lane, now),
        _blocked_reason(lane, now),
    )


def _lane_row(lane: LaneActivity, now: int) -> tuple[str, ...]:
    since, running, reason = activity_cells(lane, now)
    return (
        *(lane.agent, format_state(lane.state), str(lane.pending), since, running),
        reason.removeprefix(f"{lane.state}: "),
    )


def _running(lane: LaneActivity, now: int) -> str:
    if lane.message_id is None or lane.claimed_at is None:
        return ""
    more = f" and {lane.processing - 1} more" if lane.processing > 1 else ""
    return f"{lane.message_id}{more} ({format_duration(now - lane.claimed_at)})"


def _blocked_reason(lane: LaneActivity, now: int) -> str:
    if lane.state != LaneState.ACTIVE:
        return one_line(f"{lane.state}: {lane.reason or NO_REASON}", REASON_CHARS)
    if lane.not_before is not None and lane.not_before > now:
        return f"rate limit of its provider: waits {format_duration(lane.not_before - now)}"
    if lane.lease_expires_at is not None and lane.lease_expires_at < now:
        return f"lease expired {format_duration(now - lane.lease_expires_at)} ago: worker not seen"
    return ""


agents_argument = click.argument(
    "agent_id", metavar="[AGENT]...", nargs=-1, shell_complete=completion.agents
)
all_option = click.option("--all", "everybody", is_flag=True, help="All agents.")


def reason_option(default: str) -> Callable[[Function], Function]:
    """The reason of a pause or drain."""
    return click.option(
        "--reason",
        metavar="TEXT",
        default=default,
        show_default=True,
        help="Reason that is shown.",
    )


@command(people_only="pause agents")
@agents_argument
@all_option
@reason_option("paused by hand")
@dry_run
def pause(
    settings: Settings, agent_id: tuple[str, ...], everybody: bool, reason: str, dry_run: bool
) -> Result:
    """Pause agents.

    Running messages finish, and no new ones start. Paused agents still accept messages.
    `bullpen queue pause` is an alias.

    \b
    Examples:
      bullpen agent pause coder --reason "on holiday"
      bullpen agent pause --all --reason "the provider is down"
    """
    arguments = _arguments(agent_id, everybody)
    return _move_lanes(
        settings,
        agent_id,
        LaneState.PAUSED,
        lambda tx, agent: pause_lane(tx, agent, reason),
        f"Paused {{}} ({reason}). Next: bullpen agent resume {arguments}",
        dry_run=dry_run,
    )


@command(people_only="resume agents")
@agents_argument
@all_option
@dry_run
def resume(settings: Settings, agent_id: tuple[str, ...], everybody: bool, dry_run: bool) -> Result:
    """Resume paused or draining agents.

    \b
    Examples:
      bullpen agent resume coder
      bullpen agent resume --all
    """
    return resume_lanes(settings, agent_id, everybody=everybody, dry_run=dry_run)


def resume_lanes(
    settings: Settings, agents: tuple[str, ...], *, everybody: bool, dry_run: bool
) -> Result:
    """Resume the lanes of these agents, or of all."""
    _arguments(agents, everybody)
    notes = [] if dry_run else _set_up_runs(settings, agents)
    moved = _move_lanes(
        settings,
        agents,
        LaneState.ACTIVE,
        resume_lane,
        "Resumed {}.",
        dry_run=dry_run,
    )
    return replace(moved, notes=notes)


def _set_up_runs(settings: Settings, named: tuple[str, ...]) -> list[str]:
    """Lines about the programs of these agents, which the runs may find only from now on."""
    with read_transaction(settings) as tx:
        agents = [get_agent(tx, each) for each in named] or list_agents(tx)
        return [*adopt_shell_path(tx, agents), *setup_steps(tx, agents)]


@command(people_only="drain agents")
@agents_argument
@all_option
@reason_option("drained by hand")
@dry_run
def drain(
    settings: Settings, agent_id: tuple[str, ...], everybody: bool, reason: str, dry_run: bool
) -> Result:
    """Drain agents: process pending messages, accept none.

    \b
    Examples:
      bullpen queue drain coder --reason "replaced by @writer"
      bullpen queue drain --all
    """
    arguments = _arguments(agent_id, everybody)
    return _move_lanes(
        settings,
        agent_id,
        LaneState.DRAINING,
        lambda tx, agent: drain_lane(tx, agent, reason),
        f"Draining {{}} ({reason}). Next: bullpen queue agents, bullpen agent resume {arguments}",
        dry_run=dry_run,
    )


def _arguments(agents: tuple[str, ...], everybody: bool) -> str:
    """The arguments that name the same agents in another command."""
    if bool(agents) == everybody:
        raise UsageError("give ids of agents or --all", "List agents: bullpen queue agents")
    return "--all" if everybody else " ".join(agents)


def _move_lanes(
    settings: Settings,
    named: tuple[str, ...],
    target: LaneState,
    verb: Callable[[Transaction, str], None],
    done: str,
    *,
    dry_run: bool,
) -> Result:
    """Move the lanes that are not in the target state, in the order of their names.

    `done` is the confirmation, with {} in place of the agents.
    """
    with (read_transaction if dry_run else write_transaction)(settings) as tx:
        agents = sorted({*named} or {each.id for each in list_agents(tx)})
        for each in named:
            get_agent(tx, each)  # the lane of a removed agent stays archived
        states = {each: get_lane(tx, each).state for each in agents}
        moved = [each for each, state in states.items() if state != target]
        for each in [] if dry_run else moved:
            verb(tx, each)
    already = [each for each in agents if each not in moved]
    lines = []
    if moved and dry_run:
        lines.append(f"Would become {target}: {_names(moved)}.")
    elif moved:
        lines.append(done.replace("{}", _names(moved), 1))
    if already:
        lines.append(f"Already {target}: {_names(already)}.")
    return Result(
        {"dry_run": dry_run, "state": target.value, "moved": moved, "already": already},
        lines or "No agents yet. Next: bullpen agent add coder",
    )


def _names(agents: list[str]) -> str:
    return ", ".join(f"@{each}" for each in agents)
