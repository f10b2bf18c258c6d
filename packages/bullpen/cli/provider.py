"""bullpen provider: list providers, and add, change and remove custom ones."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from bullpen.cli import completion
from bullpen.cli.command import read_transaction, require_person, write_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.model import SwitchRequest, switch_agents
from bullpen.cli.output import as_json, confirm, dry_run, print_json, print_result, print_table, yes
from bullpen.core.errors import BadProvider
from bullpen.core.roster.programs import Program, find_programs, probe_versions
from bullpen.core.roster.providers import (
    CUSTOM_PREFIX,
    CustomProvider,
    CustomProviderChange,
    Harness,
    ProviderOrigin,
    ProviderSummary,
    add_custom_provider,
    change_custom_provider,
    get_custom_provider,
    get_provider,
    list_providers,
    remove_custom_provider,
)
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction


@click.group(
    cls=LazyGroup,
    modules={
        "add": "bullpen.cli.provider:add",
        "list": "bullpen.cli.provider:list_",
        "remove": "bullpen.cli.provider:remove",
        "set": "bullpen.cli.provider:set_",
        "show": "bullpen.cli.provider:show",
        "use": "bullpen.cli.provider:use",
    },
)
def provider() -> None:
    """See what can answer, let agents use it, and add services of your own.

    \b
    Example:
      bullpen provider list
    """


HARNESSES = click.Choice([each.value for each in Harness])


def prompt_key() -> str:
    """The key, asked for at a terminal, else the first line of standard input."""
    if sys.stdin.isatty():
        key: str = click.prompt("Key", hide_input=True, err=True)
    else:
        key = sys.stdin.readline().strip()
    if not key:
        raise BadProvider("there is no key on standard input", hint="Give it as `... < key`.")
    return key


def custom_id(given: str) -> str:
    """The id of a service that was added, named with `custom:` or without."""
    return given.removeprefix(CUSTOM_PREFIX)


_NEEDS_NONE = {"echo": "built in", "http": "outside workers"}


def provider_fields(found: ProviderSummary, program: Program | None) -> dict[str, object]:
    """All of it for a JSON document."""
    return {
        **asdict(found),
        "installed": found.program is None or (program is not None and program.path is not None),
        "path": None if program is None else program.path,
        "version": "" if program is None else program.version,
    }


def describe_availability(found: ProviderSummary, program: Program | None) -> str:
    """Whether it is there, in words."""
    if found.origin is ProviderOrigin.MISSING:
        return "is not there"
    if program is None:
        return _NEEDS_NONE.get(found.provider, found.origin.value)
    if program.path is None:
        own = program.name == found.provider
        return "not installed" if own else f"{program.name} is not installed"
    return program.version or "installed"


def format_agents(found: ProviderSummary) -> str:
    """Which agents it answers for."""
    return " ".join(found.agents)


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
@click.argument("provider", shell_complete=completion.providers)
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


@click.command()
@click.argument("provider_id", nargs=-1, required=True, shell_complete=completion.custom_providers)
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


@click.command(name="set")
@click.argument("provider_id", shell_complete=completion.custom_providers)
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


@click.command()
@click.argument("provider", shell_complete=completion.providers)
@click.option(
    "--agent", "agents", multiple=True, shell_complete=completion.agents, help="For this agent."
)
@click.option(
    "--from", "old", shell_complete=completion.providers, help="For all that use this one now."
)
@click.option(
    "--model",
    shell_complete=completion.models,
    help="Which model they get; else PROVIDER's own choice.",
)
@yes
@dry_run
@as_json
@click.pass_obj
def use(
    settings: Settings,
    provider: str,
    agents: tuple[str, ...],
    old: str | None,
    model: str | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Let PROVIDER answer for agents, named ones or all of another provider.

    Each begins a session anew; what it remembers in its files stays.

    \b
    Examples:
      bullpen provider use claude --agent coder --model opus
      bullpen provider use codex --from claude --dry-run
    """
    require_person("change what answers for agents")
    wish = SwitchRequest(named=agents, of_provider=old, provider=provider, model=model)
    switch_agents(settings, wish, sure=yes, dry_run=dry_run, as_json=as_json)
