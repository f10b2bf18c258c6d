"""bullpen agent lane: how an agent's queue behaves."""

from __future__ import annotations

from dataclasses import asdict

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_result, write_transaction
from bullpen.core.queue.lane import Batching, Ordering, Overflow
from bullpen.core.queue.lanes import LanePolicy, configure_lane, get_lane_policy
from bullpen.core.settings import Settings

ORDERINGS = click.Choice([each.value for each in Ordering])
BATCHINGS = click.Choice([each.value for each in Batching])
OVERFLOWS = click.Choice([each.value for each in Overflow])


@click.command()
@click.argument("agent_id", shell_complete=ids.agents)
@click.option("--ordering", type=ORDERINGS, help="Which waiting message comes first.")
@click.option("--batching", type=BATCHINGS, help="How many waiting messages one run answers.")
@click.option("--max-depth", type=click.IntRange(0), help="How many may wait; 0 is any number.")
@click.option("--overflow", type=OVERFLOWS, help="What happens to one too many.")
@click.option("--max-attempts", type=click.IntRange(1), help="Failed runs before one is dead.")
@as_json
@click.pass_obj
def lane(
    settings: Settings,
    agent_id: str,
    ordering: str | None,
    batching: str | None,
    max_depth: int | None,
    overflow: str | None,
    max_attempts: int | None,
    as_json: bool,
) -> None:
    """Change how an agent's queue behaves; what is not named stays.

    \b
    Example:
      bullpen agent lane coder --batching one --ordering priority
    """
    require_person("change how queues behave")
    with write_transaction(settings) as tx:
        now = get_lane_policy(tx, agent_id)
        policy = LanePolicy(
            ordering=Ordering(ordering or now.ordering),
            batching=Batching(batching or now.batching),
            max_depth=now.max_depth if max_depth is None else max_depth or None,
            overflow=Overflow(overflow or now.overflow),
            max_attempts=max_attempts or now.max_attempts,
        )
        configure_lane(tx, agent_id, policy)
    depth = "any number" if policy.max_depth is None else policy.max_depth
    print_result(
        as_json,
        {"agent": agent_id, **asdict(policy)},
        f"@{agent_id}: {policy.ordering} order, {policy.batching} at a time, {depth} waiting, "
        f"{policy.overflow} when full, dead after {policy.max_attempts} failures",
    )
