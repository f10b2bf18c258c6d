"""bullpen provider use: agents get another provider."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.confirm import dry_run, yes
from bullpen.cli.output import as_json
from bullpen.cli.switching import SwitchRequest, switch_agents
from bullpen.core.settings import Settings


@click.command()
@click.argument("provider", shell_complete=ids.providers)
@click.option("--agent", "agents", multiple=True, shell_complete=ids.agents, help="For this agent.")
@click.option("--from", "old", shell_complete=ids.providers, help="For all that use this one now.")
@click.option(
    "--model",
    shell_complete=ids.models,
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
