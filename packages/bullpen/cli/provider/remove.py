"""bullpen provider remove."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.confirm import confirm, yes
from bullpen.cli.output import as_json, print_result, read_transaction, write_transaction
from bullpen.cli.provider.given import custom_id
from bullpen.core.roster.available import ProviderSummary, get_provider
from bullpen.core.roster.custom_providers import (
    CUSTOM_PREFIX,
    get_custom_provider,
    remove_custom_provider,
)
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction


@click.command()
@click.argument("provider_id", nargs=-1, required=True, shell_complete=ids.custom_providers)
@yes
@as_json
@click.pass_obj
def remove(settings: Settings, provider_id: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Forget services and their keys. Agents that name one are paused with their next message.

    \b
    Example:
      bullpen provider remove local
    """
    require_person("remove providers")
    with read_transaction(settings) as tx:
        found = _named(tx, provider_id)
    confirm("\n".join(_what(each) for each in found), yes)
    with write_transaction(settings) as tx:
        found = _named(tx, provider_id)
        for each in found:
            remove_custom_provider(tx, custom_id(each.provider))
    left = sorted(agent for each in found for agent in each.agents)
    document = {"removed": [each.provider for each in found], "agents": left}
    print_result(as_json, document, *(f"{each.provider} is removed" for each in found))
    if left and not as_json:
        click.echo(f"{', '.join(left)}: paused with the next message, for want of a provider.")
        click.echo(f"Next: bullpen provider use ANOTHER --from {found[0].provider}")


def _named(tx: Transaction, given: tuple[str, ...]) -> list[ProviderSummary]:
    names = sorted({custom_id(each) for each in given})
    return [get_provider(tx, CUSTOM_PREFIX + get_custom_provider(tx, each).id) for each in names]


def _what(found: ProviderSummary) -> str:
    count = len(found.agents)
    users = f" ({count} agent{'s use' if count > 1 else ' uses'} it)" if count else ""
    return f"Remove {found.provider} and its key{users}"
