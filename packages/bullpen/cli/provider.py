"""bullpen provider: list providers, and add, change and remove custom ones."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, read_transaction, write_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.model import SwitchRequest, switch_agents
from bullpen.cli.options import dry_run, yes
from bullpen.cli.output import confirm, format_fields
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


@click.group(cls=LazyGroup)
def provider() -> None:
    """See what can answer, let agents use it, and add services of your own.

    \b
    Example:
      bullpen provider list
    """


HARNESSES = click.Choice([each.value for each in Harness])


@command(provider, people_only="add providers")
@click.argument("provider_id")
@click.option("--harness", type=HARNESSES, required=True, help="Which command line speaks to it.")
@click.option("--base-url", required=True, help="Its address.")
@click.option("--model", default="", help="Which model, unless an agent has its own.")
@click.option("--name", default="", help="What people call it.")
def add(
    settings: Settings,
    provider_id: str,
    harness: str,
    base_url: str,
    model: str,
    name: str,
) -> Result:
    """Make a service known as custom:ID. Its key is asked for, or read from standard input.

    \b
    Example:
      bullpen provider add local --harness claude --base-url http://127.0.0.1:8000 < key
    """
    custom = CustomProvider(
        id=provider_id,
        name=name,
        harness=Harness(harness),
        base_url=base_url,
        api_key=prompt_key(),
        model=model,
    )
    with write_transaction(settings) as tx:
        add_custom_provider(tx, custom)
        summary = get_provider(tx, CUSTOM_PREFIX + provider_id)
    document = provider_fields(summary, find_programs((harness,))[harness])
    return Result(document, f"Next: bullpen provider use {summary.provider} --agent NAME")


@command(provider)
def list_(settings: Settings) -> Result:
    """List the providers, their versions, and which agents use each; keys are never shown.

    \b
    Example:
      bullpen provider list
    """
    with read_transaction(settings) as tx:
        providers = list_providers(tx)
    versions = probe_versions({each.program for each in providers if each.program is not None})
    programs = [versions.get(each.program or "") for each in providers]
    rows = [("PROVIDER", "STATE", "ADDRESS", "MODEL", "AGENTS")]
    for each, program in zip(providers, programs, strict=True):
        state = describe_availability(each, program)
        rows.append((each.provider, state, each.base_url, each.model, " ".join(each.agents)))
    return Result(list(map(provider_fields, providers, programs)), rows=rows)


@command(provider)
@click.argument("provider", shell_complete=completion.providers)
def show(settings: Settings, provider: str) -> Result:
    """Show everything about one provider; its key is never shown.

    \b
    Example:
      bullpen provider show claude
    """
    with read_transaction(settings) as tx:
        summary = get_provider(tx, provider)
    name = summary.program
    program = None if name is None else probe_versions((name,))[name]
    return Result(
        provider_fields(summary, program),
        format_fields(
            ("provider", summary.provider),
            ("name", summary.name or None),
            ("origin", summary.origin.value.replace("_", " ")),
            ("program", name),
            ("state", describe_availability(summary, program)),
            ("path", program.path if program else None),
            ("address", summary.base_url or None),
            ("model", summary.model or None),
            ("key", "Bullpen has it" if summary.configured and name else None),
            ("agents", " ".join(summary.agents) or "(none)"),
            width=9,
        ),
    )


@command(provider, people_only="remove providers")
@click.argument("provider_id", nargs=-1, required=True, shell_complete=completion.custom_providers)
@yes
def remove(settings: Settings, provider_id: tuple[str, ...], yes: bool) -> Result:
    """Forget services and their keys. Agents that name one are paused with their next message.

    \b
    Example:
      bullpen provider remove local
    """
    with read_transaction(settings) as tx:
        summaries = _get_custom_providers(tx, provider_id)
    confirm("\n".join(_describe_removal(each) for each in summaries), yes)
    with write_transaction(settings) as tx:
        summaries = _get_custom_providers(tx, provider_id)
        for each in summaries:
            remove_custom_provider(tx, custom_id(each.provider))
    users = sorted(agent for each in summaries for agent in each.agents)
    lines = [f"{each.provider} is removed" for each in summaries]
    if users:
        lines += [
            f"{', '.join(users)}: paused with the next message, for want of a provider.",
            f"Next: bullpen provider use ANOTHER --from {summaries[0].provider}",
        ]
    return Result({"removed": [each.provider for each in summaries], "agents": users}, lines)


def _get_custom_providers(tx: Transaction, names: Sequence[str]) -> list[ProviderSummary]:
    ids = sorted({custom_id(each) for each in names})
    return [get_provider(tx, CUSTOM_PREFIX + get_custom_provider(tx, each).id) for each in ids]


def _describe_removal(summary: ProviderSummary) -> str:
    count = len(summary.agents)
    users = f" ({count} agent{'s use' if count > 1 else ' uses'} it)" if count else ""
    return f"Remove {summary.provider} and its key{users}"


@command(provider, people_only="change providers")
@click.argument("provider_id", shell_complete=completion.custom_providers)
@click.option("--harness", type=HARNESSES, help="Which command line speaks to it.")
@click.option("--base-url", help="Its address; another host needs --key as well.")
@click.option("--model", help="Which model, unless an agent has its own; '' is its own choice.")
@click.option("--name", help="What people call it.")
@click.option("--key", is_flag=True, help="A new key: asked for, or read from standard input.")
def set_(
    settings: Settings,
    provider_id: str,
    harness: str | None,
    base_url: str | None,
    model: str | None,
    name: str | None,
    key: bool,
) -> Result:
    """Change a service that was added; what is not named stays. Runs that begin from now see it.

    \b
    Example:
      bullpen provider set local --key < key
    """
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
        summary = get_provider(tx, CUSTOM_PREFIX + changed.id)
    program = find_programs((changed.harness.value,))[changed.harness.value]
    return Result(provider_fields(summary, program), f"{summary.provider} is changed")


@command(provider, people_only="change what answers for agents")
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
def use(
    settings: Settings,
    provider: str,
    agents: tuple[str, ...],
    old: str | None,
    model: str | None,
    yes: bool,
    dry_run: bool,
) -> Result:
    """Let PROVIDER answer for agents, named ones or all of another provider.

    Each begins a session anew; what it remembers in its files stays.

    \b
    Examples:
      bullpen provider use claude --agent coder --model opus
      bullpen provider use codex --from claude --dry-run
    """
    request = SwitchRequest(named=agents, of_provider=old, provider=provider, model=model)
    return switch_agents(settings, request, sure=yes, dry_run=dry_run)


def prompt_key() -> str:
    """Ask for the key at a terminal, else read the first line of standard input."""
    if sys.stdin.isatty():
        key: str = click.prompt("Key", hide_input=True, err=True)
    else:
        key = sys.stdin.readline().strip()
    if not key:
        raise BadProvider("there is no key on standard input", hint="Give it as `... < key`.")
    return key


def custom_id(name: str) -> str:
    """Return the id of a custom provider, named with `custom:` or without."""
    return name.removeprefix(CUSTOM_PREFIX)


_WITHOUT_PROGRAM = {"echo": "built in", "http": "outside workers"}


def provider_fields(summary: ProviderSummary, program: Program | None) -> dict[str, object]:
    """Return a provider and its program for a JSON document."""
    return {
        **asdict(summary),
        "installed": summary.program is None or (program is not None and program.path is not None),
        "path": None if program is None else program.path,
        "version": "" if program is None else program.version,
    }


def describe_availability(summary: ProviderSummary, program: Program | None) -> str:
    """Return the version of a provider's program, or why it cannot be used."""
    if summary.origin is ProviderOrigin.MISSING:
        return "is not there"
    if program is None:
        return _WITHOUT_PROGRAM.get(summary.provider, summary.origin.value)
    if program.path is None:
        own = program.name == summary.provider
        return "not installed" if own else f"{program.name} is not installed"
    return program.version or "installed"
