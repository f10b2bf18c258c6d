"""bullpen queue pause, resume and drain: whether agents begin anything, and take anything in."""

from __future__ import annotations

from collections.abc import Callable

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.confirm import dry_run
from bullpen.cli.output import as_json, print_result, read_transaction, write_transaction
from bullpen.core.queue.lane_list import get_lane
from bullpen.core.queue.lanes import drain_lane, pause_lane, resume_lane
from bullpen.core.roster.find import get_agent, list_agents
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState
from bullpen.core.store.transaction import Transaction

agents_argument = click.argument("agent_id", nargs=-1, shell_complete=ids.agents)
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
    named = _named(agent_id, everybody)
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
    _named(agent_id, everybody)
    _move_lanes(
        settings,
        (agent_id, dry_run, as_json),
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
    named = _named(agent_id, everybody)
    _move_lanes(
        settings,
        (agent_id, dry_run, as_json),
        LaneState.DRAINING,
        lambda tx, agent: drain_lane(tx, agent, reason),
        f"draining ({reason}): nothing more comes in. "
        f"Next: bullpen queue agents, bullpen queue resume {named}",
    )


def _named(agents: tuple[str, ...], everybody: bool) -> str:
    """How the same agents are named once more."""
    if bool(agents) == everybody:
        raise click.UsageError(
            "Say whose: agents' ids, or --all.\nThe agents are: bullpen queue agents"
        )
    return "--all" if everybody else " ".join(agents)


def _move_lanes(
    settings: Settings,
    given: tuple[tuple[str, ...], bool, bool],
    target: LaneState,
    verb: Callable[[Transaction, str], None],
    said: str,
) -> None:
    """Move the lanes, by name: those that are not there already."""
    named, dry, as_json = given
    with (read_transaction if dry else write_transaction)(settings) as tx:
        agents = sorted({*named} or {each.id for each in list_agents(tx)})
        for each in named:
            get_agent(tx, each)  # the lane of one that was removed stays closed
        states = {each: get_lane(tx, each).state for each in agents}
        moved = [each for each, state in states.items() if state != target]
        for each in [] if dry else moved:
            verb(tx, each)
    there = [each for each in agents if each not in moved]
    _tell(target, moved, there, said, dry, as_json)


def _tell(
    target: LaneState, moved: list[str], there: list[str], said: str, dry: bool, as_json: bool
) -> None:
    lines = []
    if moved:
        become = "would be" if dry else "is" if len(moved) == 1 else "are"
        lines.append(f"{_names(moved)} {become} {said}")
    if there:
        lines.append(f"{_names(there)} {'was' if len(there) == 1 else 'were'} {target} already.")
    if not lines:
        lines.append("There are no agents. Next: bullpen agent add coder")
    document = {"dry_run": dry, "state": target.value, "moved": moved, "already": there}
    print_result(as_json, document, *lines)


def _names(agents: list[str]) -> str:
    return ", ".join(f"@{each}" for each in agents)
