"""bullpen provider: services behind a command line that is known."""

from __future__ import annotations

import shutil
import sys

import click

from bullpen.cli.output import as_json, reading, show_json, show_table, writing
from bullpen.core.errors import BadProvider
from bullpen.core.roster.custom_providers import (
    CustomProvider,
    Harness,
    add_custom_provider,
    list_custom_providers,
    remove_custom_provider,
)
from bullpen.core.settings import Settings

HARNESSES = click.Choice([each.value for each in Harness])


@click.group()
def provider() -> None:
    """See what can answer, and add services of your own.

    \b
    Example:
      bullpen provider list
    """


@provider.command(name="list")
@as_json
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List the providers and whether they are installed; keys are never shown.

    \b
    Example:
      bullpen provider list
    """
    with reading(settings) as tx:
        custom = list_custom_providers(tx)
    rows = [("PROVIDER", "STATE", "ADDRESS", "MODEL")]
    rows += [(name, _state(name), "", "") for name in ("claude", "codex", "opencode")]
    rows += [("http", "outside workers", "", ""), ("echo", "built in", "", "")]
    rows += [
        (f"custom:{each.id}", _state(each.harness.value), each.base_url, each.model)
        for each in custom
    ]
    if as_json:
        names = ("provider", "state", "base_url", "model")
        show_json([dict(zip(names, row, strict=True)) for row in rows[1:]])
        return
    show_table(rows, "")


@provider.command()
@click.argument("provider_id")
@click.option("--harness", type=HARNESSES, required=True, help="Which command line speaks to it.")
@click.option("--base-url", required=True, help="Its address.")
@click.option("--model", default="", help="Which model, unless an agent has its own.")
@click.option("--name", default="", help="What people call it.")
@click.pass_obj
def add(
    settings: Settings, provider_id: str, harness: str, base_url: str, model: str, name: str
) -> None:
    """Make a service known as custom:ID. Its key is asked for, or read from standard input.

    \b
    Example:
      bullpen provider add local --harness claude --base-url http://127.0.0.1:8000 < key
    """
    if sys.stdin.isatty():
        key: str = click.prompt("Key", hide_input=True)
    else:
        key = sys.stdin.readline().strip()
    if not key:
        raise BadProvider("there is no key on standard input")
    made = CustomProvider(
        id=provider_id,
        name=name,
        harness=Harness(harness),
        base_url=base_url,
        api_key=key,
        model=model,
    )
    with writing(settings) as tx:
        add_custom_provider(tx, made)
    click.echo(f"Next: bullpen agent add someone --provider custom:{provider_id}")


@provider.command()
@click.argument("provider_id")
@click.pass_obj
def remove(settings: Settings, provider_id: str) -> None:
    """Forget a service and its key.

    \b
    Example:
      bullpen provider remove local
    """
    with writing(settings) as tx:
        remove_custom_provider(tx, provider_id.removeprefix("custom:"))
    click.echo(f"{provider_id} is removed; agents that name it are paused with their next message")


def _state(program: str) -> str:
    return "installed" if shutil.which(program) else f"{program} is not installed"
