"""bullpen model set."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.confirm import dry_run, yes
from bullpen.cli.output import as_json
from bullpen.cli.switching import SwitchRequest, switch_agents
from bullpen.core.settings import Settings


@click.command(name="set")
@click.argument("model", shell_complete=ids.models)
@click.option("--agent", "agents", multiple=True, shell_complete=ids.agents, help="For this agent.")
@click.option("--provider", shell_complete=ids.providers, help="For all that use this provider.")
@yes
@dry_run
@as_json
@click.pass_obj
def set_(
    settings: Settings,
    model: str,
    agents: tuple[str, ...],
    provider: str | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Let agents use MODEL, named ones or all of a provider; '' is the provider's own choice.

    \b
    Examples:
      bullpen model set opus --agent coder
      bullpen model set gpt-5.2 --provider codex --dry-run
    """
    require_person("change the models of agents")
    wish = SwitchRequest(named=agents, of_provider=provider, model=model)
    switch_agents(settings, wish, sure=yes, dry_run=dry_run, as_json=as_json)
