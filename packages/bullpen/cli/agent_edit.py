"""bullpen agent add, set, lane, provider and reset: the commands that change an agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path

import click

from bullpen.cli import completion
from bullpen.cli.agent import agent_fields, describe_policy
from bullpen.cli.command import Result, command, read_transaction, require_person, write_transaction
from bullpen.cli.options import Count, Function, combine_options, require_change
from bullpen.cli.output import format_provider
from bullpen.cli.provider_setup import setup_steps
from bullpen.core.company import add_agent, apply_switches, change_agent, plan_switches, reset_agent
from bullpen.core.errors import InputError
from bullpen.core.inspect.lanes import get_lane
from bullpen.core.queue.disposition import is_paused_by_failure
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
from bullpen.core.workspace.templates import PROTOCOL_FILE, prepare_directory

DEFAULTS = Agent(id="")


def agent_options(*, defaults: bool) -> Callable[[Function], Function]:
    """Return the options of a new agent, or those that change one and have no defaults."""

    def choice(
        name: str, kind: type[StrEnum], default: str, text: str
    ) -> Callable[[Function], Function]:
        choices = click.Choice([each.value for each in kind])
        shown = str(default) if defaults else None
        return click.option(name, type=choices, default=shown, show_default=True, help=text)

    return combine_options(
        click.option("--name", help="Display name."),
        click.option(
            "--provider",
            metavar="NAME",
            shell_complete=completion.providers,
            default=DEFAULTS.provider if defaults else None,
            show_default=True,
            help="Provider that answers: echo, claude, codex, opencode, http or custom:ID.",
        ),
        click.option(
            "--model",
            metavar="NAME",
            shell_complete=completion.models,
            help="Model; '' is the provider's default.",
        ),
        click.option(
            "--directory",
            metavar="PATH",
            type=click.Path(),
            help="Working directory, such as a repository; '' is the agent's own directory.",
        ),
        click.option("--system-prompt", help="Instructions in addition to the agent's AGENTS.md."),
        choice(
            "--permission",
            Permission,
            DEFAULTS.permission,
            "What runs may do: read files, edit files, or everything.",
        ),
        choice(
            "--context",
            Context,
            DEFAULTS.context,
            "Which messages share a session: all of the agent, of a sender, of a chat or thread, "
            "or of a conversation.",
        ),
        choice(
            "--scheduling",
            Scheduling,
            DEFAULTS.scheduling,
            "Agents for which it may create schedules: none, itself, or its teams too.",
        ),
        choice(
            "--reach",
            Reach,
            DEFAULTS.reach,
            "Messages that its runs may read, and people they may write to.",
        ),
        choice("--sandbox", Sandbox, DEFAULTS.sandbox, "Isolation of its runs from this machine."),
    )


@command(people_only="create agents", tx="write")
@click.argument("agent_id", metavar="AGENT")
@agent_options(defaults=True)
def add(tx: Transaction, /, agent_id: str, **options: str | None) -> Result:
    """Create an agent.

    Its role is described in AGENTS.md in its directory in the workspace, or with --system-prompt.
    With --directory it works in that directory, for example in your repository.

    \b
    Examples:
      bullpen agent add coder --provider claude
      bullpen agent add coder --provider claude --directory ~/my-repo
      bullpen agent add tester --system-prompt "You write tests, and change nothing else."
    """
    add_agent(tx, Agent(id=agent_id, **_change(tx, options)))
    added = get_agent(tx, agent_id)
    prepare_directory(tx.settings, agent_id)
    return Result(
        agent_fields(added, get_lane(tx, agent_id)),
        f"Created @{agent_id} (provider: {format_provider(added.provider, added.model)}).",
        notes=setup_steps(tx, [added]),
        hints=[
            f"Next: describe its role in {tx.settings.workspace / agent_id / PROTOCOL_FILE}",
            f'      bullpen send "@{agent_id} hello"',
        ],
    )


@command(people_only="change agents", tx="write")
@click.argument("agent_id", metavar="AGENT", shell_complete=completion.agents)
@agent_options(defaults=False)
def set_(tx: Transaction, /, agent_id: str, **options: str | None) -> Result:
    """Change an agent.

    Only the given options change. A new provider or directory starts a new session.

    \b
    Examples:
      bullpen agent set coder --provider claude
      bullpen agent set coder --model opus
      bullpen agent set coder --directory ~/my-repo
    """
    before = get_agent(tx, agent_id)
    require_change(options)
    paused = is_paused_by_failure(tx, agent_id)
    changed = change_agent(tx, agent_id, **_change(tx, options))
    lines = [f"Changed @{agent_id}."]
    if paused and not is_paused_by_failure(tx, agent_id):
        lines.append(f"Resumed @{agent_id}.")
    notes = []
    if changed.provider != before.provider:
        notes = setup_steps(tx, [changed])
        if changed.model and options["model"] is None:
            notes.append(
                f"The model is still {changed.model}. "
                f"For the default of {changed.provider}: bullpen agent set {agent_id} --model ''"
            )
    return Result(agent_fields(changed, get_lane(tx, agent_id)), lines, notes=notes)


def _change(tx: Transaction, options: dict[str, str | None]) -> AgentChange:
    named = {name: value for name, value in options.items() if value is not None}
    if named.get("directory"):
        named["directory"] = check_directory(named["directory"])
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


def check_directory(given: str) -> str:
    """Return the absolute path of a directory, which must exist."""
    path = Path(given).expanduser().absolute()
    if not path.is_dir():
        problem = "is not a directory" if path.exists() else "does not exist"
        raise InputError(
            f"directory {str(path)!r} {problem}",
            hint="Give the path of a directory that exists.",
        )
    return str(path)


ORDERINGS = click.Choice([each.value for each in Ordering])
BATCHINGS = click.Choice([each.value for each in Batching])
OVERFLOWS = click.Choice([each.value for each in Overflow])


@command(people_only="change the policies of lanes", tx="write")
@click.argument("agent_id", metavar="AGENT", shell_complete=completion.agents)
@click.option("--ordering", type=ORDERINGS, help="Order of pending messages.")
@click.option("--batching", type=BATCHINGS, help="Pending messages that one run answers.")
@click.option(
    "--max-depth",
    type=Count(0, MAX_DEPTH),
    help="Maximum number of pending messages; 0 is unlimited.",
)
@click.option("--overflow", type=OVERFLOWS, help="Action when the lane is full.")
@click.option(
    "--max-attempts",
    type=Count(1, MAX_ATTEMPTS),
    help="Failed runs after which a message is dead.",
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
    """Change the policy of an agent's lane.

    Only the given options change.

    \b
    Example:
      bullpen agent lane coder --batching one --ordering priority
    """
    require_change(
        {
            "ordering": ordering,
            "batching": batching,
            "max_depth": max_depth,
            "overflow": overflow,
            "max_attempts": max_attempts,
        }
    )
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
@click.argument("agent_id", metavar="AGENT", shell_complete=completion.agents)
@click.argument("provider", required=False, shell_complete=completion.providers)
@click.option(
    "--model",
    shell_complete=completion.models,
    metavar="NAME",
    show_default="the provider's default, if the provider changes",
    help="Model.",
)
def provider(settings: Settings, agent_id: str, provider: str | None, model: str | None) -> Result:
    """Show or change an agent's provider and model.

    To change them you can also use: bullpen agent set AGENT --provider NAME

    \b
    Examples:
      bullpen agent provider coder
      bullpen agent provider coder claude --model opus
    """
    resumed: list[str] = []
    notes: list[str] = []
    if provider is None and model is None:
        with read_transaction(settings) as tx:
            agent = get_agent(tx, agent_id)
    else:
        require_person("change the providers of agents")
        with write_transaction(settings) as tx:
            name = None if provider is None else resolve_provider_name(tx, provider)
            resumed = apply_switches(tx, plan_switches([get_agent(tx, agent_id)], name, model))
            agent = get_agent(tx, agent_id)
            notes = setup_steps(tx, [agent])
    document = {"agent": agent.id, "provider": agent.provider, "model": agent.model}
    lines = [f"@{agent.id}: {format_provider(agent.provider, agent.model)}"]
    return Result(document, lines + [f"Resumed @{each}." for each in resumed], notes=notes)


@command(people_only="reset agents", tx="write")
@click.argument(
    "agent_id", metavar="AGENT...", nargs=-1, required=True, shell_complete=completion.agents
)
def reset(tx: Transaction, agent_id: tuple[str, ...]) -> Result:
    """Delete the sessions of agents.

    The next message starts a new session. History, memory and files stay.

    \b
    Example:
      bullpen agent reset coder
    """
    for each in sorted(set(agent_id)):
        reset_agent(tx, each)
    named = ", ".join(f"@{each}" for each in agent_id)
    return Result({"reset": list(agent_id)}, f"Deleted the sessions of {named}.")
