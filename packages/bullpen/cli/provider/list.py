"""bullpen provider list and show."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.output import as_json, print_json, print_table, read_transaction
from bullpen.cli.provider.shown import describe_availability, format_agents, provider_fields
from bullpen.core.roster.available import get_provider, list_providers
from bullpen.core.roster.programs import probe_versions
from bullpen.core.settings import Settings


@click.command(name="list")
@as_json
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List the providers, their versions, and which agents use each; keys are never shown.

    \b
    Example:
      bullpen provider list
    """
    with read_transaction(settings) as tx:
        found = list_providers(tx)
    programs = probe_versions({each.program for each in found if each.program is not None})
    if as_json:
        print_json([provider_fields(each, programs.get(each.program or "")) for each in found])
        return
    rows = [("PROVIDER", "STATE", "ADDRESS", "MODEL", "AGENTS")]
    for each in found:
        where = describe_availability(each, programs.get(each.program or ""))
        rows.append((each.provider, where, each.base_url, each.model, format_agents(each)))
    print_table(rows, "")


@click.command()
@click.argument("provider", shell_complete=ids.providers)
@as_json
@click.pass_obj
def show(settings: Settings, provider: str, as_json: bool) -> None:
    """Show everything about one provider; its key is never shown.

    \b
    Example:
      bullpen provider show claude
    """
    with read_transaction(settings) as tx:
        found = get_provider(tx, provider)
    program = None if found.program is None else probe_versions((found.program,))[found.program]
    if as_json:
        print_json(provider_fields(found, program))
        return
    for name, value in (
        ("provider", found.provider),
        ("name", found.name),
        ("origin", found.origin.value.replace("_", " ")),
        ("program", found.program or ""),
        ("state", describe_availability(found, program)),
        ("path", (program.path if program else None) or ""),
        ("address", found.base_url),
        ("model", found.model),
        ("key", "Bullpen has it" if found.configured and found.program else ""),
        ("agents", format_agents(found) or "(none)"),
    ):
        if value:
            click.echo(f"{name:<9} {value}")
