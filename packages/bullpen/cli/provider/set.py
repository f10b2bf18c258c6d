"""bullpen provider set."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_result, write_transaction
from bullpen.cli.provider.given import HARNESSES, custom_id, prompt_key
from bullpen.cli.provider.shown import provider_fields
from bullpen.core.roster.available import get_provider
from bullpen.core.roster.custom_providers import (
    CUSTOM_PREFIX,
    CustomProviderChange,
    Harness,
    change_custom_provider,
)
from bullpen.core.roster.programs import find_programs
from bullpen.core.settings import Settings


@click.command(name="set")
@click.argument("provider_id", shell_complete=ids.custom_providers)
@click.option("--harness", type=HARNESSES, help="Which command line speaks to it.")
@click.option("--base-url", help="Its address; another host needs --key as well.")
@click.option("--model", help="Which model, unless an agent has its own; '' is its own choice.")
@click.option("--name", help="What people call it.")
@click.option("--key", is_flag=True, help="A new key: asked for, or read from standard input.")
@as_json
@click.pass_obj
def set_(
    settings: Settings,
    provider_id: str,
    harness: str | None,
    base_url: str | None,
    model: str | None,
    name: str | None,
    key: bool,
    as_json: bool,
) -> None:
    """Change a service that was added; what is not named stays. Runs that begin from now see it.

    \b
    Example:
      bullpen provider set local --key < key
    """
    require_person("change providers")
    change = CustomProviderChange()
    if harness is not None:
        change["harness"] = Harness(harness)
    if base_url is not None:
        change["base_url"] = base_url
    if model is not None:
        change["model"] = model
    if name is not None:
        change["name"] = name
    if key:
        change["api_key"] = prompt_key()
    with write_transaction(settings) as tx:
        changed = change_custom_provider(tx, custom_id(provider_id), **change)
        found = get_provider(tx, CUSTOM_PREFIX + changed.id)
    program = find_programs((changed.harness.value,))[changed.harness.value]
    print_result(as_json, provider_fields(found, program), f"{found.provider} is changed")
