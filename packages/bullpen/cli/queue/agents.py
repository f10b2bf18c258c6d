"""bullpen queue agents: the lanes."""

from __future__ import annotations

import click

from bullpen.cli.output import as_json, print_json, print_table, read_transaction
from bullpen.cli.queue.shown import blocked_reason, format_age, lane_activity
from bullpen.core.queue.overview import LaneActivity, list_lane_activity
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState

LANES_HEADING = ("AGENT", "STATE", "ORDER", "WAITING", "FOR", "RUNS", "WHY NOT")


@click.command()
@click.option("--all", "everybody", is_flag=True, help="Agents that were removed as well.")
@as_json
@click.pass_obj
def agents(settings: Settings, everybody: bool, as_json: bool) -> None:
    """Show the queue of each agent: its state and order, what waits and what runs for how long.

    \b
    Example:
      bullpen queue agents
    """
    with read_transaction(settings) as tx:
        found, now = list_lane_activity(tx), tx.now
    found = tuple(lane for lane in found if everybody or lane.state != LaneState.ARCHIVED)
    if as_json:
        print_json(list(found))
        return
    print_table(
        [LANES_HEADING, *(_lane_row(lane, now) for lane in found)],
        "There are no agents yet. Next: bullpen agent add coder --provider claude",
    )


def _lane_row(lane: LaneActivity, now: int) -> tuple[str, ...]:
    since = format_age(now, lane.waiting_since)
    return (
        *(lane.agent, lane.state, lane.ordering, str(lane.pending), since),
        *(lane_activity(lane, now), blocked_reason(lane, now).removeprefix(f"{lane.state}: ")),
    )
