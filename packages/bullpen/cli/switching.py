"""A change of provider or model, of many agents at once: shown, asked for and done."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

import click

from bullpen.cli.confirm import confirm
from bullpen.cli.output import print_result, read_transaction, write_transaction
from bullpen.core.roster.available import get_provider
from bullpen.core.roster.provider_names import resolve_provider_name
from bullpen.core.roster.switch import ProviderSwitch, apply_switches, plan_switches, select_agents
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction


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
