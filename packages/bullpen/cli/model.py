"""bullpen model: list models and switch an agent's model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, read_transaction, write_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import dry_run, yes
from bullpen.cli.output import confirm, format_count, format_provider
from bullpen.core.company import ProviderSwitch, apply_switches, plan_switches, select_agents
from bullpen.core.roster.agents import list_agents
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
    """See which model answers for which agent, and change it for one or many.

    \b
    Example:
      bullpen model set opus --agent coder
    """


@command(model, tx="read")
def list_(tx: Transaction) -> Result:
    """List the models, and which agents use each.

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
        (provider, model or "(its own choice)", " ".join(users[provider, model]))
        for provider, model in sorted(users)
    ]
    return Result(
        [
            {"provider": provider, "model": model, "agents": users[provider, model]}
            for provider, model in sorted(users)
        ],
        rows=rows,
        empty="There are no agents yet. Next: bullpen agent add coder --provider claude",
    )


@command(model, people_only="change the models of agents")
@click.argument("model", shell_complete=completion.models)
@click.option(
    "--agent", "agents", multiple=True, shell_complete=completion.agents, help="For this agent."
)
@click.option(
    "--provider", shell_complete=completion.providers, help="For all that use this provider."
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
    """Let agents use MODEL, named ones or all of a provider; '' is the provider's own choice.

    \b
    Examples:
      bullpen model set opus --agent coder
      bullpen model set gpt-5.2 --provider codex --dry-run
    """
    request = SwitchRequest(named=agents, of_provider=provider, model=model)
    return switch_agents(settings, request, sure=yes, dry_run=dry_run)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRequest:
    """Which agents get another provider or model, and which one."""

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
        raise click.UsageError("Say whose: name agents, or all of a provider.")
    if request.named and request.of_provider is not None:
        raise click.UsageError("Name agents, or all of a provider, not both.")
    with read_transaction(settings) as tx:
        switches = _plan(tx, request)
    if dry_run:
        return Result(
            _switch_fields(switches, done=False),
            [f"Would be {_describe_switch(each)}" for each in switches],
            notes=[f"{format_count(len(switches), 'agent')} would change; nothing was done."],
        )
    if switches and request.of_provider is not None:
        lines = [*map(_describe_switch, switches), f"Change {format_count(len(switches), 'agent')}"]
        confirm("\n".join(lines), sure, many=True)
    with write_transaction(settings) as tx:
        switches = _plan(tx, request)
        apply_switches(tx, switches)
    return Result(
        _switch_fields(switches, done=True),
        [_describe_switch(each) for each in switches]
        or "Nothing is to be changed: it is so already.",
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
