"""bullpen agent add, set, lane, provider and reset: the commands that change an agent."""

from __future__ import annotations

from dataclasses import asdict

import click

from bullpen.cli import completion
from bullpen.cli.agent import agent_fields, describe_policy
from bullpen.cli.command import Result, command, read_transaction, require_person, write_transaction
from bullpen.cli.options import combine_options
from bullpen.cli.output import format_provider
from bullpen.core.company import add_agent, apply_switches, change_agent, plan_switches, reset_agent
from bullpen.core.inspect.lanes import get_lane
from bullpen.core.queue.lanes import (
    MAX_ATTEMPTS,
    MAX_DEPTH,
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
    Reach,
    Sandbox,
    Scheduling,
    get_agent,
)
from bullpen.core.roster.providers import resolve_provider_name
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction

agent_options = combine_options(
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
    click.option(
        "--reach",
        type=click.Choice([each.value for each in Reach]),
        help="What the commands of its runs read, and to whom they write  [default: conversation]",
    ),
    click.option(
        "--sandbox",
        type=click.Choice([each.value for each in Sandbox]),
        help="What keeps its runs from the rest of this machine  [default: none]",
    ),
)


@command(people_only="take on agents", tx="write")
@click.argument("agent_id")
@agent_options
def add(tx: Transaction, /, agent_id: str, **options: str | None) -> Result:
    """Take on an agent.

    \b
    Example:
      bullpen agent add coder --provider claude --permission edit
    """
    add_agent(tx, Agent(id=agent_id, **_change(tx, options)))
    return Result(
        agent_fields(get_agent(tx, agent_id), get_lane(tx, agent_id)),
        f"@{agent_id} is there. Next: bullpen send '@{agent_id} hello'",
    )


@command(people_only="change agents", tx="write")
@click.argument("agent_id", shell_complete=completion.agents)
@agent_options
def set_(tx: Transaction, /, agent_id: str, **options: str | None) -> Result:
    """Change what is named; the rest stays.

    \b
    Example:
      bullpen agent set assistant --provider claude
    """
    before = get_agent(tx, agent_id)
    changed = change_agent(tx, agent_id, **_change(tx, options))
    notes = []
    if changed.provider != before.provider and changed.model and options["model"] is None:
        notes.append(
            f"Its model is {changed.model} as before. "
            f"If {changed.provider} has none of that name: bullpen agent set {agent_id} --model ''"
        )
    document = agent_fields(changed, get_lane(tx, agent_id))
    return Result(document, f"@{agent_id} is changed", notes=notes)


def _change(tx: Transaction, options: dict[str, str | None]) -> AgentChange:
    named = {name: value for name, value in options.items() if value is not None}
    change = AgentChange()
    if (provider := named.get("provider")) is not None:
        change["provider"] = resolve_provider_name(tx, provider)
    if (permission := named.get("permission")) is not None:
        change["permission"] = Permission(permission)
    if (context := named.get("context")) is not None:
        change["context"] = Context(context)
    if (scheduling := named.get("scheduling")) is not None:
        change["scheduling"] = Scheduling(scheduling)
    if (reach := named.get("reach")) is not None:
        change["reach"] = Reach(reach)
    if (sandbox := named.get("sandbox")) is not None:
        change["sandbox"] = Sandbox(sandbox)
    for name in ("name", "model", "directory", "system_prompt"):
        if name in named:
            change[name] = named[name]
    return change


ORDERINGS = click.Choice([each.value for each in Ordering])
BATCHINGS = click.Choice([each.value for each in Batching])
OVERFLOWS = click.Choice([each.value for each in Overflow])


@command(people_only="change how queues behave", tx="write")
@click.argument("agent_id", shell_complete=completion.agents)
@click.option("--ordering", type=ORDERINGS, help="Which waiting message comes first.")
@click.option("--batching", type=BATCHINGS, help="How many waiting messages one run answers.")
@click.option(
    "--max-depth", type=click.IntRange(0, MAX_DEPTH), help="How many may wait; 0 is any number."
)
@click.option("--overflow", type=OVERFLOWS, help="What happens to one too many.")
@click.option(
    "--max-attempts", type=click.IntRange(1, MAX_ATTEMPTS), help="Failed runs before one is dead."
)
def lane(
    tx: Transaction,
    agent_id: str,
    ordering: str | None,
    batching: str | None,
    max_depth: int | None,
    overflow: str | None,
    max_attempts: int | None,
) -> Result:
    """Change how an agent's queue behaves; what is not named stays.

    \b
    Example:
      bullpen agent lane coder --batching one --ordering priority
    """
    before = get_lane_policy(tx, agent_id)
    policy = LanePolicy(
        ordering=Ordering(ordering or before.ordering),
        batching=Batching(batching or before.batching),
        max_depth=before.max_depth if max_depth is None else max_depth or None,
        overflow=Overflow(overflow or before.overflow),
        max_attempts=max_attempts or before.max_attempts,
    )
    configure_lane(tx, agent_id, policy)
    return Result(
        {"agent": agent_id, **asdict(policy)}, f"@{agent_id}: {describe_policy(asdict(policy))}"
    )


@command()
@click.argument("agent_id", shell_complete=completion.agents)
@click.argument("provider", required=False, shell_complete=completion.providers)
@click.option(
    "--model",
    shell_complete=completion.models,
    help="Which model; else, with another provider, that one's own choice.",
)
def provider(settings: Settings, agent_id: str, provider: str | None, model: str | None) -> Result:
    """Show what answers for an agent, or give it another PROVIDER or model.

    \b
    Examples:
      bullpen agent provider coder
      bullpen agent provider coder claude --model opus
    """
    if provider is None and model is None:
        with read_transaction(settings) as tx:
            agent = get_agent(tx, agent_id)
    else:
        require_person("change what answers for agents")
        with write_transaction(settings) as tx:
            name = None if provider is None else resolve_provider_name(tx, provider)
            apply_switches(tx, plan_switches([get_agent(tx, agent_id)], name, model))
            agent = get_agent(tx, agent_id)
    document = {"agent": agent.id, "provider": agent.provider, "model": agent.model}
    return Result(document, f"@{agent.id}: {format_provider(agent.provider, agent.model)}")


@command(people_only="reset agents", tx="write")
@click.argument("agent_id", nargs=-1, required=True, shell_complete=completion.agents)
def reset(tx: Transaction, agent_id: tuple[str, ...]) -> Result:
    """Let agents forget their sessions: they begin anew with the next message.

    \b
    Example:
      bullpen agent reset coder
    """
    for each in sorted(set(agent_id)):
        reset_agent(tx, each)
    named = ", ".join(f"@{each}" for each in agent_id)
    return Result({"reset": list(agent_id)}, f"{named}: sessions forgotten")
