"""bullpen queue pause and drain, agent pause and resume: lanes, by their agents."""

from __future__ import annotations

from collections.abc import Callable

import click

from bullpen.cli import completion
from bullpen.cli.command import read_transaction, require_person, write_transaction
from bullpen.cli.output import as_json, dry_run, print_result
from bullpen.core.inspect.queue import get_lane
from bullpen.core.queue.lanes import drain_lane, pause_lane, resume_lane
from bullpen.core.roster.agents import get_agent, list_agents
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState
from bullpen.core.store.transaction import Transaction

agents_argument = click.argument("agent_id", nargs=-1, shell_complete=completion.agents)
all_option = click.option("--all", "everybody", is_flag=True, help="All agents.")


@click.command()
@agents_argument
@all_option
@click.option("--reason", default="paused by hand", show_default=True, help="Why, for people.")
@dry_run
@as_json
@click.pass_obj
def pause(
    settings: Settings,
    agent_id: tuple[str, ...],
    everybody: bool,
    reason: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Begin no more runs of these agents; messages still come in, and what runs goes on.

    \b
    Examples:
      bullpen queue pause coder --reason "on holiday"
      bullpen queue pause --all --reason "the provider is down"
    """
    require_person("pause agents")
    named = _format_selection(agent_id, everybody)
    _move_lanes(
        settings,
        (agent_id, dry_run, as_json),
        LaneState.PAUSED,
        lambda tx, agent: pause_lane(tx, agent, reason),
        f"paused ({reason}): nothing more begins. Next: bullpen queue resume {named}",
    )


@click.command()
@agents_argument
@all_option
@dry_run
@as_json
@click.pass_obj
def resume(
    settings: Settings, agent_id: tuple[str, ...], everybody: bool, dry_run: bool, as_json: bool
) -> None:
    """Let agents that are paused or draining take in and work again.

    \b
    Examples:
      bullpen queue resume coder
      bullpen queue resume --all
    """
    require_person("let agents work again")
    resume_lanes(settings, agent_id, everybody=everybody, dry_run=dry_run, as_json=as_json)


def resume_lanes(
    settings: Settings,
    agents: tuple[str, ...],
    *,
    everybody: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Resume the lanes of these agents, or of all."""
    _format_selection(agents, everybody)
    _move_lanes(
        settings,
        (agents, dry_run, as_json),
        LaneState.ACTIVE,
        resume_lane,
        "active: what waits is taken up.",
    )


@click.command()
@agents_argument
@all_option
@click.option("--reason", default="drained by hand", show_default=True, help="Why, for people.")
@dry_run
@as_json
@click.pass_obj
def drain(
    settings: Settings,
    agent_id: tuple[str, ...],
    everybody: bool,
    reason: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Refuse new messages for these agents, and work off what is there.

    \b
    Examples:
      bullpen queue drain coder --reason "to be replaced"
      bullpen queue drain --all
    """
    require_person("drain the queues of agents")
    named = _format_selection(agent_id, everybody)
    _move_lanes(
        settings,
        (agent_id, dry_run, as_json),
        LaneState.DRAINING,
        lambda tx, agent: drain_lane(tx, agent, reason),
        f"draining ({reason}): nothing more comes in. "
        f"Next: bullpen queue agents, bullpen queue resume {named}",
    )


def _format_selection(agents: tuple[str, ...], everybody: bool) -> str:
    """The arguments that select the same agents in another command."""
    if bool(agents) == everybody:
        raise click.UsageError(
            "Say whose: agents' ids, or --all.\nThe agents are: bullpen queue agents"
        )
    return "--all" if everybody else " ".join(agents)


def _move_lanes(
    settings: Settings,
    options: tuple[tuple[str, ...], bool, bool],
    target: LaneState,
    verb: Callable[[Transaction, str], None],
    result: str,
) -> None:
    """Move the lanes that are not in the target state, in the order of their names."""
    named, dry, as_json = options
    with (read_transaction if dry else write_transaction)(settings) as tx:
        agents = sorted({*named} or {each.id for each in list_agents(tx)})
        for each in named:
            get_agent(tx, each)  # the lane of one that was removed stays closed
        states = {each: get_lane(tx, each).state for each in agents}
        moved = [each for each, state in states.items() if state != target]
        for each in [] if dry else moved:
            verb(tx, each)
    already = [each for each in agents if each not in moved]
    _print_moved(target, moved, already, result, dry, as_json)


def _print_moved(
    target: LaneState, moved: list[str], already: list[str], result: str, dry: bool, as_json: bool
) -> None:
    lines = []
    if moved:
        become = "would be" if dry else "is" if len(moved) == 1 else "are"
        lines.append(f"{_names(moved)} {become} {result}")
    if already:
        lines.append(
            f"{_names(already)} {'was' if len(already) == 1 else 'were'} {target} already."
        )
    if not lines:
        lines.append("There are no agents. Next: bullpen agent add coder")
    document = {"dry_run": dry, "state": target.value, "moved": moved, "already": already}
    print_result(as_json, document, *lines)


def _names(agents: list[str]) -> str:
    return ", ".join(f"@{each}" for each in agents)
