"""bullpen queue agents: the lanes."""

from __future__ import annotations

import click

from bullpen.cli.output import as_json, reading, show_json, show_table
from bullpen.cli.queue.shown import age, doing, why_not
from bullpen.core.queue.overview import LaneNow, lanes_now
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState

HEADING = ("AGENT", "STATE", "ORDER", "WAITING", "FOR", "RUNS", "WHY NOT")


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
    with reading(settings) as tx:
        found, now = lanes_now(tx), tx.now
    found = tuple(lane for lane in found if everybody or lane.state != LaneState.ARCHIVED)
    if as_json:
        show_json(list(found))
        return
    show_table(
        [HEADING, *(_row(lane, now) for lane in found)],
        "There are no agents yet. Next: bullpen agent add coder --provider claude",
    )


def _row(lane: LaneNow, now: int) -> tuple[str, ...]:
    since = age(now, lane.waiting_since)
    return (
        *(lane.agent, lane.state, lane.ordering, str(lane.pending), since),
        *(doing(lane, now), why_not(lane, now).removeprefix(f"{lane.state}: ")),
    )
