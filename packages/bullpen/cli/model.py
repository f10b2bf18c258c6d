"""bullpen model: list models and switch an agent's model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

import click

from bullpen.cli import completion
from bullpen.cli.command import read_transaction, require_person, write_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.output import as_json, confirm, dry_run, print_json, print_result, print_table, yes
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


@click.group(
    cls=LazyGroup, modules={"list": "bullpen.cli.model:list_", "set": "bullpen.cli.model:set_"}
)
def model() -> None:
    """See which model answers for which agent, and change it for one or many.

    \b
    Example:
      bullpen model set opus --agent coder
    """


@click.command(name="list")
@as_json
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List the models, and which agents use each.

    \b
    Example:
      bullpen model list
    """
    with read_transaction(settings) as tx:
        agents = list_agents(tx)
        usual = {CUSTOM_PREFIX + each.id: each.model for each in list_custom_providers(tx)}
    users: dict[tuple[str, str], list[str]] = {}
    for each in agents:
        model = each.model or usual.get(each.provider, "")
        users.setdefault((each.provider, model), []).append(each.id)
    found = [(provider, model, users[provider, model]) for provider, model in sorted(users)]
    if as_json:
        names = ("provider", "model", "agents")
        print_json([dict(zip(names, each, strict=True)) for each in found])
        return
    rows = [("PROVIDER", "MODEL", "AGENTS")]
    rows += [
        (provider, model or "(its own choice)", " ".join(agents))
        for provider, model, agents in found
    ]
    print_table(rows, "There are no agents yet. Next: bullpen agent add coder --provider claude")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRequest:
    """Whose provider or model is to be another, and which."""

    named: Collection[str] = ()
    of_provider: str | None = None
    """All agents that it answers for, instead of named ones."""
    provider: str | None = None
    model: str | None = None


def switch_agents(
    settings: Settings, wish: SwitchRequest, *, sure: bool, dry_run: bool, as_json: bool
) -> None:
    """Show it, ask for it if it is more than was named one by one, and do it."""
    if not wish.named and wish.of_provider is None:
        raise click.UsageError("Say whose: name agents, or all of a provider.")
    if wish.named and wish.of_provider is not None:
        raise click.UsageError("Name agents, or all of a provider, not both.")
    with read_transaction(settings) as tx:
        found = _planned(tx, wish)
    if dry_run:
        print_result(
            as_json, _document(found, done=False), *(f"Would be {_line(each)}" for each in found)
        )
        click.echo(f"{_agents(len(found))} would change; nothing was done.", err=True)
        return
    if found and wish.of_provider is not None:
        confirm("\n".join((*map(_line, found), f"Change {_agents(len(found))}")), sure, many=True)
    with write_transaction(settings) as tx:
        found = _planned(tx, wish)
        apply_switches(tx, found)
    lines = [_line(each) for each in found] or ["Nothing is to be changed: it is so already."]
    print_result(as_json, _document(found, done=True), *lines)


def _planned(tx: Transaction, wish: SwitchRequest) -> list[ProviderSwitch]:
    provider = None if wish.provider is None else resolve_provider_name(tx, wish.provider)
    old = None if wish.of_provider is None else get_provider(tx, wish.of_provider).provider
    return plan_switches(select_agents(tx, wish.named, old), provider, wish.model)


def _document(found: Sequence[ProviderSwitch], *, done: bool) -> dict[str, object]:
    return {"changed": done, "agents": [asdict(each) for each in found]}


def _line(each: ProviderSwitch) -> str:
    old, new = (
        format_provider(each.old_provider, each.old_model),
        format_provider(each.provider, each.model),
    )
    return f"@{each.agent}: {new} (before: {old})"


def format_provider(provider: str, model: str) -> str:
    """What answers, in words."""
    return f"{provider} with {model}" if model else provider


def _agents(count: int) -> str:
    return f"{count} agent" if count == 1 else f"{count} agents"


@click.command(name="set")
@click.argument("model", shell_complete=completion.models)
@click.option(
    "--agent", "agents", multiple=True, shell_complete=completion.agents, help="For this agent."
)
@click.option(
    "--provider", shell_complete=completion.providers, help="For all that use this provider."
)
@yes
@dry_run
@as_json
@click.pass_obj
def set_(
    settings: Settings,
    model: str,
    agents: tuple[str, ...],
    provider: str | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Let agents use MODEL, named ones or all of a provider; '' is the provider's own choice.

    \b
    Examples:
      bullpen model set opus --agent coder
      bullpen model set gpt-5.2 --provider codex --dry-run
    """
    require_person("change the models of agents")
    wish = SwitchRequest(named=agents, of_provider=provider, model=model)
    switch_agents(settings, wish, sure=yes, dry_run=dry_run, as_json=as_json)
