"""bullpen agent add and set: what an agent is."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.agent.shown import agent_fields
from bullpen.cli.output import Function, as_json, print_result, write_transaction
from bullpen.core.queue.lane_list import get_lane
from bullpen.core.roster.agent import Agent, AgentChange, Context, Permission, Scheduling
from bullpen.core.roster.agents import add_agent, change_agent
from bullpen.core.roster.find import get_agent
from bullpen.core.roster.provider_names import resolve_provider_name
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction

_OPTIONS = (
    click.option("--name", help="What people call it."),
    click.option(
        "--provider",
        shell_complete=ids.providers,
        help="What answers for it; echo, if it is new and you do not say.",
    ),
    click.option(
        "--model",
        shell_complete=ids.models,
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
@click.argument("agent_id", shell_complete=ids.agents)
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
