"""bullpen provider add."""

from __future__ import annotations

import click

from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_result, write_transaction
from bullpen.cli.provider.given import HARNESSES, prompt_key
from bullpen.cli.provider.shown import provider_fields
from bullpen.core.roster.available import get_provider
from bullpen.core.roster.custom_providers import (
    CUSTOM_PREFIX,
    CustomProvider,
    Harness,
    add_custom_provider,
)
from bullpen.core.roster.programs import find_programs
from bullpen.core.settings import Settings


@click.command()
@click.argument("provider_id")
@click.option("--harness", type=HARNESSES, required=True, help="Which command line speaks to it.")
@click.option("--base-url", required=True, help="Its address.")
@click.option("--model", default="", help="Which model, unless an agent has its own.")
@click.option("--name", default="", help="What people call it.")
@as_json
@click.pass_obj
def add(
    settings: Settings,
    provider_id: str,
    harness: str,
    base_url: str,
    model: str,
    name: str,
    as_json: bool,
) -> None:
    """Make a service known as custom:ID. Its key is asked for, or read from standard input.

    \b
    Example:
      bullpen provider add local --harness claude --base-url http://127.0.0.1:8000 < key
    """
    require_person("add providers")
    made = CustomProvider(
        id=provider_id,
        name=name,
        harness=Harness(harness),
        base_url=base_url,
        api_key=prompt_key(),
        model=model,
    )
    with write_transaction(settings) as tx:
        add_custom_provider(tx, made)
        found = get_provider(tx, CUSTOM_PREFIX + provider_id)
    document = provider_fields(found, find_programs((harness,))[harness])
    print_result(as_json, document, f"Next: bullpen provider use {found.provider} --agent NAME")
