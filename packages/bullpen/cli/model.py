"""bullpen model: list the models in use, and change the model of agents."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, read_transaction, write_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import dry_run, yes
from bullpen.cli.output import confirm, format_count, format_provider
from bullpen.cli.provider_setup import setup_steps
from bullpen.core.company import ProviderSwitch, apply_switches, plan_switches, select_agents
from bullpen.core.roster.agents import get_agent, list_agents
from bullpen.core.roster.providers import (
    CUSTOM_PREFIX,
    get_provider,
    list_custom_providers,
    resolve_provider_name,
)
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction


@click.group(cls=LazyGroup)
def model() -> None:
    """List and change the models of agents.

    \b
    Example:
      bullpen model list
    """


@command(model, tx="read", listing=True)
def list_(tx: Transaction) -> Result:
    """List the models in use with their agents.

    \b
    Example:
      bullpen model list
    """
    defaults = {CUSTOM_PREFIX + each.id: each.model for each in list_custom_providers(tx)}
    users: dict[tuple[str, str], list[str]] = {}
    for each in list_agents(tx):
        model = each.model or defaults.get(each.provider, "")
        users.setdefault((each.provider, model), []).append(each.id)
    rows = [("PROVIDER", "MODEL", "AGENTS")]
    rows += [
        (provider, model or "(default)", " ".join(users[provider, model]))
        for provider, model in sorted(users)
    ]
    return Result(
        [
            {"provider": provider, "model": model, "agents": users[provider, model]}
            for provider, model in sorted(users)
        ],
        rows=rows,
        ids=sorted({model for _, model in users if model}),
        empty="No agents yet. Next: bullpen agent add coder --provider claude",
    )


@command(model, people_only="change the models of agents")
@click.argument("model", shell_complete=completion.models)
@click.option(
    "--agent",
    "agents",
    metavar="AGENT",
    multiple=True,
    shell_complete=completion.agents,
    help="Agent to change. Repeatable.",
)
@click.option(
    "--provider",
    metavar="NAME",
    shell_complete=completion.providers,
    help="Change all agents of this provider.",
)
@yes
@dry_run
def set_(
    settings: Settings,
    model: str,
    agents: tuple[str, ...],
    provider: str | None,
    yes: bool,
    dry_run: bool,
) -> Result:
    """Change the model of many agents.

    MODEL '' is the provider's default. For one agent, use: bullpen agent set AGENT --model NAME

    \b
    Examples:
      bullpen model set gpt-5.2 --provider codex --dry-run
      bullpen model set opus --agent coder --agent tester
    """
    request = SwitchRequest(named=agents, of_provider=provider, model=model)
    return switch_agents(settings, request, sure=yes, dry_run=dry_run)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRequest:
    """The agents to change, and their new provider or model."""

    named: Collection[str] = ()
    of_provider: str | None = None
    """All agents of this provider, instead of named ones."""
    provider: str | None = None
    model: str | None = None


def switch_agents(
    settings: Settings, request: SwitchRequest, *, sure: bool, dry_run: bool
) -> Result:
    """Change the provider or model of agents; confirm a change of all agents of a provider."""
    if not request.named and request.of_provider is None:
        raise click.UsageError("no agents given; name agents, or a provider for all of its agents")
    if request.named and request.of_provider is not None:
        raise click.UsageError("give either agents or a provider, not both")
    with read_transaction(settings) as tx:
        switches = _plan(tx, request)
    if dry_run:
        return Result(
            _switch_fields(switches, done=False),
            [f"Would change {_describe_switch(each)}" for each in switches],
            notes=[f"Would change {format_count(len(switches), 'agent')}. Nothing was changed."],
        )
    if switches and request.of_provider is not None:
        lines = [*map(_describe_switch, switches), f"Change {format_count(len(switches), 'agent')}"]
        confirm("\n".join(lines), sure, many=True)
    with write_transaction(settings) as tx:
        switches = _plan(tx, request)
        resumed = apply_switches(tx, switches)
        notes = setup_steps(tx, [get_agent(tx, each.agent) for each in switches])
    lines = [f"Changed {_describe_switch(each)}" for each in switches]
    return Result(
        _switch_fields(switches, done=True),
        lines + [f"Resumed @{each}." for each in resumed] or "Nothing to change.",
        notes=notes,
    )


def _plan(tx: Transaction, request: SwitchRequest) -> list[ProviderSwitch]:
    provider = None if request.provider is None else resolve_provider_name(tx, request.provider)
    old = None if request.of_provider is None else get_provider(tx, request.of_provider).provider
    return plan_switches(select_agents(tx, request.named, old), provider, request.model)


def _switch_fields(switches: Sequence[ProviderSwitch], *, done: bool) -> dict[str, object]:
    return {"changed": done, "agents": [asdict(each) for each in switches]}


def _describe_switch(switch: ProviderSwitch) -> str:
    old = format_provider(switch.old_provider, switch.old_model)
    new = format_provider(switch.provider, switch.model)
    return f"@{switch.agent}: {new} (before: {old})"
