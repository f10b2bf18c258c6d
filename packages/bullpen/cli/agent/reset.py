"""bullpen agent reset: sessions are forgotten."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_result, write_transaction
from bullpen.core.roster.agents import reset_agent
from bullpen.core.settings import Settings


@click.command()
@click.argument("agent_id", nargs=-1, required=True, shell_complete=ids.agents)
@as_json
@click.pass_obj
def reset(settings: Settings, agent_id: tuple[str, ...], as_json: bool) -> None:
    """Let agents forget their sessions: they begin anew with the next message.

    \b
    Example:
      bullpen agent reset coder
    """
    require_person("reset agents")
    with write_transaction(settings) as tx:
        for each in sorted(set(agent_id)):
            reset_agent(tx, each)
    named = ", ".join(f"@{each}" for each in agent_id)
    print_result(as_json, {"reset": list(agent_id)}, f"{named}: sessions forgotten")
