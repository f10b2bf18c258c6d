"""bullpen team add-member and remove-member."""

from __future__ import annotations

from dataclasses import asdict

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_result, write_transaction
from bullpen.core.roster.members import add_members, remove_members
from bullpen.core.roster.team import Team
from bullpen.core.settings import Settings


@click.command(name="add-member")
@click.argument("team_id", shell_complete=ids.teams)
@click.argument("agent_id", nargs=-1, required=True, shell_complete=ids.agents)
@as_json
@click.pass_obj
def add_member(settings: Settings, team_id: str, agent_id: tuple[str, ...], as_json: bool) -> None:
    """Take agents into a team.

    \b
    Example:
      bullpen team add-member dev reviewer
    """
    require_person("change teams")
    with write_transaction(settings) as tx:
        changed = add_members(tx, team_id, agent_id)
    print_result(as_json, asdict(changed), _members(changed))


@click.command(name="remove-member")
@click.argument("team_id", shell_complete=ids.teams)
@click.argument("agent_id", nargs=-1, required=True, shell_complete=ids.agents)
@click.option(
    "--leader",
    shell_complete=ids.agents,
    help="Who leads from now on; if the leader goes and you do not say, who is next.",
)
@as_json
@click.pass_obj
def remove_member(
    settings: Settings,
    team_id: str,
    agent_id: tuple[str, ...],
    leader: str | None,
    as_json: bool,
) -> None:
    """Take agents out of a team; they stay otherwise.

    \b
    Example:
      bullpen team remove-member dev coder --leader reviewer
    """
    require_person("change teams")
    with write_transaction(settings) as tx:
        changed = remove_members(tx, team_id, agent_id, leader)
    print_result(as_json, asdict(changed), _members(changed))


def _members(team: Team) -> str:
    named = ", ".join(f"@{each}" for each in team.members)
    return f"@{team.id} is {named}; @{team.leader} leads"
