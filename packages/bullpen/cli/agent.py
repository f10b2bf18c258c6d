"""bullpen agent: the group, with the commands that only read."""

from __future__ import annotations

from dataclasses import asdict

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.output import format_fields
from bullpen.core.inspect.lanes import LaneRecord, get_lane, list_lanes
from bullpen.core.roster.agents import Agent, get_agent, list_agents
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.transaction import Transaction


@click.group(
    cls=LazyGroup,
    modules={
        "add": "bullpen.cli.agent_edit:add",
        "lane": "bullpen.cli.agent_edit:lane",
        "pause": "bullpen.cli.queue_lanes:pause",
        "provider": "bullpen.cli.agent_edit:provider",
        "remove": "bullpen.cli.agent_remove:remove",
        "reset": "bullpen.cli.agent_edit:reset",
        "resume": "bullpen.cli.queue_lanes:resume",
        "set": "bullpen.cli.agent_edit:set_",
    },
)
def agent() -> None:
    """Create, change, show and remove agents.

    \b
    Example:
      bullpen agent add coder --provider claude --model sonnet
    """


@command(agent, tx="read", listing=True)
def list_(tx: Transaction) -> Result:
    """List all agents with their state.

    \b
    Example:
      bullpen agent list
    """
    agents = list_agents(tx)
    lanes = {each.agent: each for each in list_lanes(tx)}
    rows = [("AGENT", "NAME", "PROVIDER", "MODEL", "PERMISSION", "STATE", "PENDING")]
    rows += [
        (
            *(a.id, a.name, a.provider, a.model, a.permission.value),
            *(lane_activity(lanes[a.id]), str(lanes[a.id].pending)),
        )
        for a in agents
    ]
    return Result(
        (agent_fields(each, lanes[each.id]) for each in agents),
        rows=rows,
        ids=(each.id for each in agents),
        empty="No agents yet. Next: bullpen agent add coder --provider claude",
    )


@command(agent, tx="read")
@click.argument("agent_id", metavar="AGENT", shell_complete=completion.agents)
def show(tx: Transaction, agent_id: str) -> Result:
    """Show one agent.

    \b
    Example:
      bullpen agent show coder
    """
    from bullpen.core.roster.teams import teams_of  # imported here: `list` starts without it

    agent, lane = get_agent(tx, agent_id), get_lane(tx, agent_id)
    teams = [each.id for each in teams_of(tx, agent_id)]
    directory = agent.directory or str(tx.settings.workspace / agent.id)
    policy = _policy_fields(lane)
    return Result(
        {**agent_fields(agent, lane), "teams": teams, "place": directory, "policy": policy},
        format_fields(
            ("id", agent.id),
            ("name", agent.name or None),
            ("provider", agent.provider),
            ("model", agent.model or "(the default of the provider)"),
            ("permission", agent.permission.value),
            ("context", agent.context.value),
            ("scheduling", agent.scheduling.value),
            ("reach", agent.reach.value),
            ("sandbox", agent.sandbox.value),
            ("directory", directory),
            ("teams", " ".join(teams) or "(none)"),
            ("state", _describe_state(lane)),
            ("queue", describe_policy(policy)),
            ("system prompt", agent.system_prompt or None),
            width=14,
        ),
    )


def agent_fields(agent: Agent, lane: LaneRecord) -> dict[str, object]:
    """Return an agent and its lane's activity for a JSON document."""
    return {
        **asdict(agent),
        "lane": {
            "state": lane.state,
            "reason": lane.reason,
            "pending": lane.pending,
            "processing": lane.processing,
        },
    }


def lane_activity(lane: LaneRecord) -> str:
    """Return what an agent is doing, in one word."""
    if lane.state != LaneState.ACTIVE:
        return lane.state
    if lane.processing:
        return MessageState.PROCESSING.value
    return "idle"


def _policy_fields(lane: LaneRecord) -> dict[str, object]:
    return {
        "ordering": lane.ordering,
        "batching": lane.batching,
        "max_depth": lane.max_depth,
        "overflow": lane.overflow,
        "max_attempts": lane.max_attempts,
    }


def describe_policy(policy: dict[str, object]) -> str:
    """Return the policy of a lane in one line."""
    depth = "unlimited" if policy["max_depth"] is None else policy["max_depth"]
    return (
        f"ordering: {policy['ordering']}, batching: {policy['batching']}, max depth: {depth}, "
        f"overflow: {policy['overflow']}, max attempts: {policy['max_attempts']}"
    )


def _describe_state(lane: LaneRecord) -> str:
    why = f" ({lane.reason})" if lane.reason else ""
    return f"{lane_activity(lane)}{why}, {lane.pending} pending, {lane.processing} processing"
