"""bullpen provider: list and test providers; add, change and remove custom ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, read_transaction, write_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.model import SwitchRequest, switch_agents
from bullpen.cli.options import dry_run, require_change, yes
from bullpen.cli.output import confirm, format_count, format_fields, one_line
from bullpen.cli.probe import probe
from bullpen.cli.provider_setup import test_hints
from bullpen.core.errors import BadProvider
from bullpen.core.roster.programs import (
    Program,
    find_programs,
    install_command,
    probe_versions,
)
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
from bullpen.ops.services.search_path import search_path


@click.group(cls=LazyGroup)
def provider() -> None:
    """Manage providers: the programs and services that answer.

    \b
    Example:
      bullpen provider list
    """


HARNESSES = click.Choice([each.value for each in Harness])


@command(provider, people_only="add providers")
@click.argument("provider_id", metavar="PROVIDER")
@click.option("--harness", type=HARNESSES, required=True, help="Command line that it works with.")
@click.option("--base-url", metavar="URL", required=True, help="Address of the service.")
@click.option("--model", metavar="NAME", default="", help="Model of agents without their own.")
@click.option("--name", default="", help="Display name.")
def add(
    settings: Settings,
    provider_id: str,
    harness: str,
    base_url: str,
    model: str,
    name: str,
) -> Result:
    """Add a service with its own address and key.

    The provider is called custom:ID. The key is read from a prompt or from standard input.

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
    path = search_path(settings, os.environ).runs
    document = provider_fields(summary, find_programs((harness,), path)[harness])
    return Result(
        document,
        f"Added {summary.provider}.",
        hints=[f"Next: bullpen agent set AGENT --provider {summary.provider}"],
    )


@command(provider, listing=True)
def list_(settings: Settings) -> Result:
    """List providers with their programs and agents.

    Keys are never shown.

    \b
    Example:
      bullpen provider list
    """
    with read_transaction(settings) as tx:
        providers = list_providers(tx)
    path = search_path(settings, os.environ)
    names = {each.program for each in providers if each.program is not None}
    versions = probe_versions(names, path.runs)
    programs = [versions.get(each.program or "") for each in providers]
    rows = [("PROVIDER", "STATE", "ADDRESS", "MODEL", "AGENTS")]
    for each, program in zip(providers, programs, strict=True):
        state = describe_availability(each, program)
        rows.append((each.provider, state, each.base_url, each.model, " ".join(each.agents)))
    return Result(
        list(map(provider_fields, providers, programs)),
        rows=rows,
        ids=(each.provider for each in providers),
        notes=path.differences(names),
    )


@command(provider)
@click.argument("provider", shell_complete=completion.providers)
def show(settings: Settings, provider: str) -> Result:
    """Show one provider.

    Its key is never shown.

    \b
    Example:
      bullpen provider show claude
    """
    with read_transaction(settings) as tx:
        summary = get_provider(tx, provider)
    name = summary.program
    path = search_path(settings, os.environ)
    program = None if name is None else probe_versions((name,), path.runs)[name]
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
            ("key", "set" if summary.configured and name else None),
            ("agents", " ".join(summary.agents) or "(none)"),
            width=9,
        ),
        notes=[] if name is None else path.differences([name]),
        hints=_describe_next(summary, program),
    )


def _describe_next(summary: ProviderSummary, program: Program | None) -> list[str]:
    if program is None:
        return []
    if program.path is not None:
        return [f"To test it: bullpen provider test {summary.provider}"]
    install = install_command(program.name)
    return [f"To install it: {install}"] if install else []


@command(provider, people_only="remove providers")
@click.argument(
    "provider_id",
    metavar="PROVIDER...",
    nargs=-1,
    required=True,
    shell_complete=completion.custom_providers,
)
@yes
def remove(settings: Settings, provider_id: tuple[str, ...], yes: bool) -> Result:
    """Remove services that were added, with their keys.

    An agent that still uses one is paused at its next message.

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
    lines = [f"Removed {each.provider}." for each in summaries]
    if users:
        names = ", ".join(f"@{each}" for each in users)
        lines += [
            f"Still in use by {names}: their next message pauses them.",
            f"Next: bullpen provider use NAME --from {summaries[0].provider}",
        ]
    return Result({"removed": [each.provider for each in summaries], "agents": users}, lines)


def _get_custom_providers(tx: Transaction, names: Sequence[str]) -> list[ProviderSummary]:
    ids = sorted({custom_id(each) for each in names})
    return [get_provider(tx, CUSTOM_PREFIX + get_custom_provider(tx, each).id) for each in ids]


def _describe_removal(summary: ProviderSummary) -> str:
    count = len(summary.agents)
    users = f" (used by {format_count(count, 'agent')})" if count else ""
    return f"Remove {summary.provider} and its key{users}"


@command(provider, people_only="change providers")
@click.argument("provider_id", metavar="PROVIDER", shell_complete=completion.custom_providers)
@click.option("--harness", type=HARNESSES, help="Command line that it works with.")
@click.option("--base-url", metavar="URL", help="Address; a new host also needs --key.")
@click.option(
    "--model", metavar="NAME", help="Model of agents without their own; '' is the default."
)
@click.option("--name", help="Display name.")
@click.option("--key", is_flag=True, help="Read a new key from a prompt or standard input.")
def set_(
    settings: Settings,
    provider_id: str,
    harness: str | None,
    base_url: str | None,
    model: str | None,
    name: str | None,
    key: bool,
) -> Result:
    """Change a service that was added.

    Only the given options change. They apply to runs that begin after the change.

    \b
    Example:
      bullpen provider set local --key < key
    """
    require_change(
        {
            "harness": harness,
            "base_url": base_url,
            "model": model,
            "name": name,
            "key": key or None,
        }
    )
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
    harness_name = changed.harness.value
    program = find_programs((harness_name,), search_path(settings, os.environ).runs)[harness_name]
    return Result(provider_fields(summary, program), f"Changed {summary.provider}.")


@command(provider, people_only="test providers")
@click.argument("provider", shell_complete=completion.providers)
@click.option(
    "--model", metavar="NAME", default="", shell_complete=completion.models, help="Model to test."
)
def test(settings: Settings, provider: str, model: str) -> Result:
    """Run a provider once to test it.

    The provider answers one word, in an empty directory. This costs a little.

    \b
    Examples:
      bullpen provider test claude
      bullpen provider test claude --model opus
    """
    with read_transaction(settings) as tx:
        name = get_provider(tx, provider).provider
    result = probe(settings, name, model)
    if result.ok:
        said = f"{name} answered in {result.seconds:.1f} s: {one_line(result.answer, 60)}"
        return Result(result, said)
    return Result(
        result,
        hints=[f"{name} did not answer: {result.error}", *test_hints(name, result.kind)],
        status=1,
    )


@command(provider, people_only="change the providers of agents")
@click.argument("provider", shell_complete=completion.providers)
@click.option(
    "--agent",
    "agents",
    metavar="AGENT",
    multiple=True,
    shell_complete=completion.agents,
    help="Agent to change. Repeatable.",
)
@click.option(
    "--from",
    "old",
    metavar="NAME",
    shell_complete=completion.providers,
    help="Change all agents of this provider.",
)
@click.option(
    "--model",
    metavar="NAME",
    shell_complete=completion.models,
    show_default="the provider's default",
    help="Model of these agents.",
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
    """Change the provider of many agents.

    For one agent, use: bullpen agent set AGENT --provider NAME. Each changed agent starts a new
    session; its memory and files stay.

    \b
    Examples:
      bullpen provider use codex --from claude --dry-run
      bullpen provider use claude --agent coder --agent tester --model opus
    """
    request = SwitchRequest(named=agents, of_provider=old, provider=provider, model=model)
    return switch_agents(settings, request, sure=yes, dry_run=dry_run)


def prompt_key() -> str:
    """Read the key from a prompt at a terminal, or from the first line of standard input."""
    if sys.stdin.isatty():
        key: str = click.prompt("Key", hide_input=True, err=True)
    else:
        key = sys.stdin.readline().strip()
    if not key:
        raise BadProvider(
            "no key on standard input", hint="Redirect a file: bullpen provider add … < key"
        )
    return key


def custom_id(name: str) -> str:
    """Return the id of a custom provider, named with `custom:` or without."""
    return name.removeprefix(CUSTOM_PREFIX)


_WITHOUT_PROGRAM = {"echo": "built in", "http": "external workers"}


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
        return "does not exist"
    if program is None:
        return _WITHOUT_PROGRAM.get(summary.provider, summary.origin.value)
    if program.path is None:
        own = program.name == summary.provider
        return "not installed" if own else f"{program.name} is not installed"
    return program.version or "installed"
