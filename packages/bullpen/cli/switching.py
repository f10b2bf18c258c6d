"""A change of provider or model, of many agents at once: shown, asked for and done."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

import click

from bullpen.cli.confirm import confirm
from bullpen.cli.output import reading, tell, writing
from bullpen.core.roster.available import get_available
from bullpen.core.roster.provider_names import provider_name
from bullpen.core.roster.switch import Switch, chosen, planned, switch
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Whose provider or model is to be another, and which."""

    named: Collection[str] = ()
    of_provider: str | None = None
    """All agents that it answers for, instead of named ones."""
    provider: str | None = None
    model: str | None = None


def change_over(
    settings: Settings, wish: Wish, *, sure: bool, dry_run: bool, as_json: bool
) -> None:
    """Show it, ask for it if it is more than was named one by one, and do it."""
    if not wish.named and wish.of_provider is None:
        raise click.UsageError("Say whose: name agents, or all of a provider.")
    if wish.named and wish.of_provider is not None:
        raise click.UsageError("Name agents, or all of a provider, not both.")
    with reading(settings) as tx:
        found = _planned(tx, wish)
    if dry_run:
        tell(as_json, _document(found, done=False), *(f"Would be {_line(each)}" for each in found))
        click.echo(f"{_agents(len(found))} would change; nothing was done.", err=True)
        return
    if found and wish.of_provider is not None:
        confirm("\n".join((*map(_line, found), f"Change {_agents(len(found))}")), sure, many=True)
    with writing(settings) as tx:
        found = _planned(tx, wish)
        switch(tx, found)
    lines = [_line(each) for each in found] or ["Nothing is to be changed: it is so already."]
    tell(as_json, _document(found, done=True), *lines)


def _planned(tx: Transaction, wish: Wish) -> list[Switch]:
    provider = None if wish.provider is None else provider_name(tx, wish.provider)
    old = None if wish.of_provider is None else get_available(tx, wish.of_provider).provider
    return planned(chosen(tx, wish.named, old), provider, wish.model)


def _document(found: Sequence[Switch], *, done: bool) -> dict[str, object]:
    return {"changed": done, "agents": [asdict(each) for each in found]}


def _line(each: Switch) -> str:
    old, new = with_model(each.old_provider, each.old_model), with_model(each.provider, each.model)
    return f"@{each.agent}: {new} (before: {old})"


def with_model(provider: str, model: str) -> str:
    """What answers, in words."""
    return f"{provider} with {model}" if model else provider


def _agents(count: int) -> str:
    return f"{count} agent" if count == 1 else f"{count} agents"
