"""bullpen agent provider: what answers for an agent."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_result, read_transaction, write_transaction
from bullpen.cli.switching import format_provider
from bullpen.core.roster.find import get_agent
from bullpen.core.roster.provider_names import resolve_provider_name
from bullpen.core.roster.switch import apply_switches, plan_switches
from bullpen.core.settings import Settings


@click.command()
@click.argument("agent_id", shell_complete=ids.agents)
@click.argument("provider", required=False, shell_complete=ids.providers)
@click.option(
    "--model",
    shell_complete=ids.models,
    help="Which model; else, with another provider, that one's own choice.",
)
@as_json
@click.pass_obj
def provider(
    settings: Settings, agent_id: str, provider: str | None, model: str | None, as_json: bool
) -> None:
    """Show what answers for an agent, or give it another PROVIDER or model.

    \b
    Examples:
      bullpen agent provider coder
      bullpen agent provider coder claude --model opus
    """
    if provider is None and model is None:
        with read_transaction(settings) as tx:
            found = get_agent(tx, agent_id)
    else:
        require_person("change what answers for agents")
        with write_transaction(settings) as tx:
            name = None if provider is None else resolve_provider_name(tx, provider)
            apply_switches(tx, plan_switches([get_agent(tx, agent_id)], name, model))
            found = get_agent(tx, agent_id)
    document = {"agent": found.id, "provider": found.provider, "model": found.model}
    print_result(as_json, document, f"@{found.id}: {format_provider(found.provider, found.model)}")
