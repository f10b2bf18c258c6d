"""bullpen agent: who answers, with what, and how its lane behaves."""

from __future__ import annotations

import shutil

import click

from bullpen.cli.output import as_json, reading, show_json, show_table, writing
from bullpen.cli.schedule_shown import telling_what_is_paused
from bullpen.core.queue.lane import Batching, Ordering, Overflow
from bullpen.core.queue.lanes import (
    LanePolicy,
    configure_lane,
    lane_policy,
    pause_lane,
    resume_lane,
)
from bullpen.core.roster.agent import Agent, AgentChange, Context, Permission, Scheduling
from bullpen.core.roster.agents import add_agent, change_agent, remove_agent, reset_agent
from bullpen.core.roster.find import get_agent, list_agents
from bullpen.core.settings import Settings

PERMISSIONS = click.Choice([each.value for each in Permission])
ORDERINGS = click.Choice([each.value for each in Ordering])
BATCHINGS = click.Choice([each.value for each in Batching])
OVERFLOWS = click.Choice([each.value for each in Overflow])
CONTEXTS = click.Choice([each.value for each in Context])
SCHEDULING = click.Choice([each.value for each in Scheduling])


@click.group()
def agent() -> None:
    """Add, change, look at and remove agents.

    \b
    Example:
      bullpen agent add coder --provider claude --model sonnet
    """


@agent.command(name="list")
@as_json
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List all agents.

    \b
    Example:
      bullpen agent list
    """
    with reading(settings) as tx:
        found = list_agents(tx)
    if as_json:
        show_json(found)
        return
    rows = [("AGENT", "NAME", "PROVIDER", "MODEL", "PERMISSION", "DIRECTORY")]
    rows += [
        (a.id, a.name, a.provider, a.model, a.permission.value, a.directory or "(workspace)")
        for a in found
    ]
    show_table(rows, "There are no agents yet. Next: bullpen agent add coder --provider claude")


@agent.command()
@click.argument("agent_id")
@as_json
@click.pass_obj
def show(settings: Settings, agent_id: str, as_json: bool) -> None:
    """Show everything about one agent.

    \b
    Example:
      bullpen agent show coder
    """
    with reading(settings) as tx:
        found = get_agent(tx, agent_id)
    if as_json:
        show_json(found)
        return
    directory = found.directory or str(settings.workspace / found.id)
    for name, value in (
        ("id", found.id),
        ("name", found.name),
        ("provider", found.provider),
        ("model", found.model or "(the provider's own choice)"),
        ("permission", found.permission.value),
        ("context", found.context.value),
        ("scheduling", found.scheduling.value),
        ("directory", directory),
        ("system prompt", found.system_prompt),
    ):
        click.echo(f"{name:<14} {value}")


@agent.command()
@click.argument("agent_id")
@click.option("--name", help="What people call it.")
@click.option("--provider", default="echo", show_default=True, help="What answers for it.")
@click.option("--model", help="Which model; else the provider's own choice.")
@click.option("--directory", help="Where it works; else its own directory in the workspace.")
@click.option("--system-prompt", help="What it is told besides its AGENTS.md.")
@click.option("--permission", type=PERMISSIONS, help="What it may do; edit, if not said.")
@click.option("--context", type=CONTEXTS, help="What shares a session; agent, if not said.")
@click.option(
    "--scheduling",
    type=SCHEDULING,
    help="For whom it may make schedules: nobody, itself (if not said), or teammates as well.",
)
@click.pass_obj
def add(settings: Settings, /, agent_id: str, **given: str | None) -> None:
    """Take on an agent.

    \b
    Example:
      bullpen agent add coder --provider claude --permission edit
    """
    change = _change(given)
    with writing(settings) as tx:
        add_agent(tx, Agent(id=agent_id, **change))
    click.echo(f"@{agent_id} is there. Next: bullpen send '@{agent_id} hello'")


@agent.command(name="set")
@click.argument("agent_id")
@click.option("--name", help="What people call it.")
@click.option("--provider", help="What answers for it.")
@click.option("--model", help="Which model; '' is the provider's own choice.")
@click.option("--directory", help="Where it works; '' is its own directory in the workspace.")
@click.option("--system-prompt", help="What it is told besides its AGENTS.md.")
@click.option("--permission", type=PERMISSIONS, help="What it may do.")
@click.option("--context", type=CONTEXTS, help="What shares a session.")
@click.option("--scheduling", type=SCHEDULING, help="For whom it may make schedules.")
@click.pass_obj
def set_(settings: Settings, /, agent_id: str, **given: str | None) -> None:
    """Change what is named; the rest stays.

    \b
    Example:
      bullpen agent set assistant --provider claude
    """
    with writing(settings) as tx:
        change_agent(tx, agent_id, **_change(given))
    click.echo(f"@{agent_id} is changed")


@agent.command()
@click.argument("agent_id")
@click.option("--ordering", type=ORDERINGS, help="Which waiting message comes first.")
@click.option("--batching", type=BATCHINGS, help="How many waiting messages one run answers.")
@click.option("--max-depth", type=click.IntRange(0), help="How many may wait; 0 is any number.")
@click.option("--overflow", type=OVERFLOWS, help="What happens to one too many.")
@click.option("--max-attempts", type=click.IntRange(1), help="Failed runs before one is dead.")
@click.pass_obj
def lane(
    settings: Settings,
    agent_id: str,
    ordering: str | None,
    batching: str | None,
    max_depth: int | None,
    overflow: str | None,
    max_attempts: int | None,
) -> None:
    """Change how an agent's queue behaves; what is not named stays.

    \b
    Example:
      bullpen agent lane coder --batching one --ordering priority
    """
    with writing(settings) as tx:
        now = lane_policy(tx, agent_id)
        policy = LanePolicy(
            ordering=Ordering(ordering or now.ordering),
            batching=Batching(batching or now.batching),
            max_depth=now.max_depth if max_depth is None else max_depth or None,
            overflow=Overflow(overflow or now.overflow),
            max_attempts=max_attempts or now.max_attempts,
        )
        configure_lane(tx, agent_id, policy)
    depth = "any number" if policy.max_depth is None else policy.max_depth
    click.echo(
        f"@{agent_id}: {policy.ordering} order, {policy.batching} at a time, {depth} waiting, "
        f"{policy.overflow} when full, dead after {policy.max_attempts} failures"
    )


@agent.command()
@click.argument("agent_id")
@click.option("--force", is_flag=True, help="Cancel what it still has to do.")
@click.option("--delete-files", is_flag=True, help="Delete its directory, if Bullpen made it.")
@click.pass_obj
def remove(settings: Settings, agent_id: str, force: bool, delete_files: bool) -> None:
    """Let an agent go. Its history stays, and its files unless you say otherwise.

    \b
    Example:
      bullpen agent remove coder
    """
    with writing(settings) as tx, telling_what_is_paused(tx) as said:
        remove_agent(tx, agent_id, force=force)
    click.echo("\n".join((f"@{agent_id} is removed", *said)))
    home = settings.workspace / agent_id
    if not home.is_dir():
        return
    marker = home / ".bullpen" / "made_by_bullpen"
    if delete_files and marker.is_file() and not home.is_symlink():
        shutil.rmtree(home)
        click.echo(f"{home} is deleted")
    elif delete_files:
        click.echo(f"{home} was not made by Bullpen and stays", err=True)
    else:
        click.echo(f"Its files stay in {home}")


@agent.command()
@click.argument("agent_id", nargs=-1, required=True)
@click.pass_obj
def reset(settings: Settings, agent_id: tuple[str, ...]) -> None:
    """Let agents forget their sessions: they begin anew with the next message.

    \b
    Example:
      bullpen agent reset coder
    """
    with writing(settings) as tx:
        for each in agent_id:
            reset_agent(tx, each)
    click.echo(f"{', '.join('@' + each for each in agent_id)}: sessions forgotten")


@agent.command()
@click.argument("agent_id")
@click.option("--reason", default="paused by hand", show_default=True, help="Why, for people.")
@click.pass_obj
def pause(settings: Settings, agent_id: str, reason: str) -> None:
    """Start no more runs of an agent; messages still come in.

    \b
    Example:
      bullpen agent pause coder --reason "on holiday"
    """
    with writing(settings) as tx:
        pause_lane(tx, agent_id, reason)
    click.echo(f"@{agent_id} is paused. Next: bullpen agent resume {agent_id}")


@agent.command()
@click.argument("agent_id")
@click.pass_obj
def resume(settings: Settings, agent_id: str) -> None:
    """Let an agent work again.

    \b
    Example:
      bullpen agent resume coder
    """
    with writing(settings) as tx:
        resume_lane(tx, agent_id)
    click.echo(f"@{agent_id} works again")


def _change(given: dict[str, str | None]) -> AgentChange:
    named = {name: value for name, value in given.items() if value is not None}
    change = AgentChange()
    if (permission := named.pop("permission", None)) is not None:
        change["permission"] = Permission(permission)
    if (context := named.pop("context", None)) is not None:
        change["context"] = Context(context)
    if (scheduling := named.pop("scheduling", None)) is not None:
        change["scheduling"] = Scheduling(scheduling)
    for name in ("name", "provider", "model", "directory", "system_prompt"):
        if name in named:
            change[name] = named[name]
    return change
