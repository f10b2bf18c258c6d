"""bullpen agent: add, change, show and remove agents."""

from __future__ import annotations

from dataclasses import asdict

import click

from bullpen.cli import completion
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.model import format_provider
from bullpen.cli.options import require_person
from bullpen.cli.output import (
    Function,
    as_json,
    print_json,
    print_result,
    print_table,
    read_transaction,
    write_transaction,
)
from bullpen.core.company import add_agent, apply_switches, change_agent, plan_switches, reset_agent
from bullpen.core.inspect.queue import LaneRecord, get_lane, list_lanes
from bullpen.core.queue.lanes import (
    Batching,
    LanePolicy,
    Ordering,
    Overflow,
    configure_lane,
    get_lane_policy,
)
from bullpen.core.roster.agents import (
    Agent,
    AgentChange,
    Context,
    Permission,
    Scheduling,
    get_agent,
    list_agents,
)
from bullpen.core.roster.providers import resolve_provider_name
from bullpen.core.roster.teams import teams_of
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState
from bullpen.core.store.transaction import Transaction


@click.group(
    cls=LazyGroup,
    places={
        "add": "bullpen.cli.agent:add",
        "lane": "bullpen.cli.agent:lane",
        "list": "bullpen.cli.agent:list_",
        "pause": "bullpen.cli.queue_actions:pause",
        "provider": "bullpen.cli.agent:provider",
        "remove": "bullpen.cli.agent_remove:remove",
        "reset": "bullpen.cli.agent:reset",
        "resume": "bullpen.cli.queue_actions:resume",
        "set": "bullpen.cli.agent:set_",
        "show": "bullpen.cli.agent:show",
    },
)
def agent() -> None:
    """Add, change, look at and remove agents.

    \b
    Example:
      bullpen agent add coder --provider claude --model sonnet
    """


def agent_fields(agent: Agent, lane: LaneRecord) -> dict[str, object]:
    """All of it for a JSON document."""
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
    """What its lane is at, in a word."""
    if lane.state != LaneState.ACTIVE:
        return lane.state
    if lane.processing:
        return "running"
    return "waiting" if lane.pending else "idle"


def agent_directory(agent: Agent, settings: Settings) -> str:
    """Where it works."""
    return agent.directory or str(settings.workspace / agent.id)


_OPTIONS = (
    click.option("--name", help="What people call it."),
    click.option(
        "--provider",
        shell_complete=completion.providers,
        help="What answers for it; echo, if it is new and you do not say.",
    ),
    click.option(
        "--model",
        shell_complete=completion.models,
        help="Which model; '' is the provider's own choice.",
    ),
    click.option(
        "--directory",
        type=click.Path(),
        help="Where it works; '' is its own directory in the workspace.",
    ),
    click.option("--system-prompt", help="What it is told besides its AGENTS.md."),
    click.option(
        "--permission",
        type=click.Choice([each.value for each in Permission]),
        help="What it may do; edit, if never said.",
    ),
    click.option(
        "--context",
        type=click.Choice([each.value for each in Context]),
        help="What shares a session; agent, if never said.",
    ),
    click.option(
        "--scheduling",
        type=click.Choice([each.value for each in Scheduling]),
        help="For whom it may make schedules: nobody, itself (if never said), or teammates too.",
    ),
)


def _options(function: Function) -> Function:
    """The options that describe an agent."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command()
@click.argument("agent_id")
@_options
@as_json
@click.pass_obj
def add(settings: Settings, /, agent_id: str, as_json: bool, **given: str | None) -> None:
    """Take on an agent.

    \b
    Example:
      bullpen agent add coder --provider claude --permission edit
    """
    require_person("take on agents")
    with write_transaction(settings) as tx:
        add_agent(tx, Agent(id=agent_id, **_change(tx, given)))
        document = agent_fields(get_agent(tx, agent_id), get_lane(tx, agent_id))
    print_result(as_json, document, f"@{agent_id} is there. Next: bullpen send '@{agent_id} hello'")


@click.command(name="set")
@click.argument("agent_id", shell_complete=completion.agents)
@_options
@as_json
@click.pass_obj
def set_(settings: Settings, /, agent_id: str, as_json: bool, **given: str | None) -> None:
    """Change what is named; the rest stays.

    \b
    Example:
      bullpen agent set assistant --provider claude
    """
    require_person("change agents")
    with write_transaction(settings) as tx:
        before = get_agent(tx, agent_id)
        changed = change_agent(tx, agent_id, **_change(tx, given))
        document = agent_fields(changed, get_lane(tx, agent_id))
    print_result(as_json, document, f"@{agent_id} is changed")
    if changed.provider != before.provider and changed.model and given["model"] is None:
        click.echo(
            f"Its model is {changed.model} as before. "
            f"If {changed.provider} has none of that name: bullpen agent set {agent_id} --model ''",
            err=True,
        )


def _change(tx: Transaction, given: dict[str, str | None]) -> AgentChange:
    named = {name: value for name, value in given.items() if value is not None}
    change = AgentChange()
    if (provider := named.get("provider")) is not None:
        change["provider"] = resolve_provider_name(tx, provider)
    if (permission := named.get("permission")) is not None:
        change["permission"] = Permission(permission)
    if (context := named.get("context")) is not None:
        change["context"] = Context(context)
    if (scheduling := named.get("scheduling")) is not None:
        change["scheduling"] = Scheduling(scheduling)
    for name in ("name", "model", "directory", "system_prompt"):
        if name in named:
            change[name] = named[name]
    return change


ORDERINGS = click.Choice([each.value for each in Ordering])
BATCHINGS = click.Choice([each.value for each in Batching])
OVERFLOWS = click.Choice([each.value for each in Overflow])


@click.command()
@click.argument("agent_id", shell_complete=completion.agents)
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


@click.command(name="list")
@as_json
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List all agents, and what each is at.

    \b
    Example:
      bullpen agent list
    """
    with read_transaction(settings) as tx:
        found = list_agents(tx)
        lanes = {each.agent: each for each in list_lanes(tx)}
    if as_json:
        print_json([agent_fields(each, lanes[each.id]) for each in found])
        return
    rows = [("AGENT", "NAME", "PROVIDER", "MODEL", "PERMISSION", "STATE", "WAITING")]
    rows += [
        (
            *(a.id, a.name, a.provider, a.model, a.permission.value),
            *(lane_activity(lanes[a.id]), str(lanes[a.id].pending)),
        )
        for a in found
    ]
    print_table(rows, "There are no agents yet. Next: bullpen agent add coder --provider claude")


@click.command()
@click.argument("agent_id", shell_complete=completion.agents)
@click.argument("provider", required=False, shell_complete=completion.providers)
@click.option(
    "--model",
    shell_complete=completion.models,
    help="Which model; else, with another provider, that one's own choice.",
)
@as_json
@click.pass_obj
def provider(
    settings: Settings, agent_id: str, provider: str | None, model: str | None, as_json: bool
) -> None:
    """Show what answers for an agent, or give it another PROVIDER or model.

    \b
    Examples:
      bullpen agent provider coder
      bullpen agent provider coder claude --model opus
    """
    if provider is None and model is None:
        with read_transaction(settings) as tx:
            found = get_agent(tx, agent_id)
    else:
        require_person("change what answers for agents")
        with write_transaction(settings) as tx:
            name = None if provider is None else resolve_provider_name(tx, provider)
            apply_switches(tx, plan_switches([get_agent(tx, agent_id)], name, model))
            found = get_agent(tx, agent_id)
    document = {"agent": found.id, "provider": found.provider, "model": found.model}
    print_result(as_json, document, f"@{found.id}: {format_provider(found.provider, found.model)}")


@click.command()
@click.argument("agent_id", nargs=-1, required=True, shell_complete=completion.agents)
@as_json
@click.pass_obj
def reset(settings: Settings, agent_id: tuple[str, ...], as_json: bool) -> None:
    """Let agents forget their sessions: they begin anew with the next message.

    \b
    Example:
      bullpen agent reset coder
    """
    require_person("reset agents")
    with write_transaction(settings) as tx:
        for each in sorted(set(agent_id)):
            reset_agent(tx, each)
    named = ", ".join(f"@{each}" for each in agent_id)
    print_result(as_json, {"reset": list(agent_id)}, f"{named}: sessions forgotten")


@click.command()
@click.argument("agent_id", shell_complete=completion.agents)
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
