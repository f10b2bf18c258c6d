"""bullpen agent show."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.agent.shown import agent_directory, agent_fields, lane_activity
from bullpen.cli.output import as_json, print_json, read_transaction
from bullpen.core.queue.lane_list import LaneRecord, get_lane
from bullpen.core.roster.find import get_agent
from bullpen.core.roster.teams import teams_of
from bullpen.core.settings import Settings


@click.command()
@click.argument("agent_id", shell_complete=ids.agents)
@as_json
@click.pass_obj
def show(settings: Settings, agent_id: str, as_json: bool) -> None:
    """Show everything about one agent.

    \b
    Example:
      bullpen agent show coder
    """
    with read_transaction(settings) as tx:
        found = get_agent(tx, agent_id)
        lane = get_lane(tx, agent_id)
        teams = [each.id for each in teams_of(tx, agent_id)]
    if as_json:
        fields = {
            **agent_fields(found, lane),
            "teams": teams,
            "place": agent_directory(found, settings),
        }
        print_json({**fields, "policy": _policy(lane)})
        return
    for name, value in (
        ("id", found.id),
        ("name", found.name),
        ("provider", found.provider),
        ("model", found.model or "(the provider's own choice)"),
        ("permission", found.permission.value),
        ("context", found.context.value),
        ("scheduling", found.scheduling.value),
        ("directory", agent_directory(found, settings)),
        ("teams", " ".join(teams) or "(none)"),
        ("state", _state(lane)),
        ("queue", _queue(lane)),
        ("system prompt", found.system_prompt),
    ):
        click.echo(f"{name:<14} {value}".rstrip())


def _policy(lane: LaneRecord) -> dict[str, object]:
    return {
        "ordering": lane.ordering,
        "batching": lane.batching,
        "max_depth": lane.max_depth,
        "overflow": lane.overflow,
        "max_attempts": lane.max_attempts,
    }


def _state(lane: LaneRecord) -> str:
    why = f" ({lane.reason})" if lane.reason else ""
    return f"{lane_activity(lane)}{why}, {lane.pending} waiting, {lane.processing} in work"


def _queue(lane: LaneRecord) -> str:
    depth = "any number" if lane.max_depth is None else lane.max_depth
    return (
        f"{lane.ordering} order, {lane.batching} at a time, {depth} waiting, "
        f"{lane.overflow} when full, dead after {lane.max_attempts} failures"
    )
