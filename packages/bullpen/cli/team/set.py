"""bullpen team set."""

from __future__ import annotations

from dataclasses import asdict

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_result, write_transaction
from bullpen.cli.team.add import DELIVERIES
from bullpen.core.roster.team import DeliveryMode, TeamChange
from bullpen.core.roster.teams import change_team
from bullpen.core.settings import Settings


@click.command(name="set")
@click.argument("team_id", shell_complete=ids.teams)
@click.option("--leader", shell_complete=ids.agents, help="Who gets what is said to the team.")
@click.option(
    "--member",
    "members",
    multiple=True,
    shell_complete=ids.agents,
    help="A member; give all of them.",
)
@click.option("--name", help="What people call it.")
@click.option("--delivery", type=DELIVERIES, help="How answers come: each, or all as one.")
@click.option("--max-hops", type=int, help="Handoffs in a row.")
@click.option("--max-messages", type=int, help="Messages of one conversation.")
@click.option("--max-cost", type=float, help="Dollars of one conversation; 0 is any.")
@click.option("--usual-limits", is_flag=True, help="No limits of its own: those of the settings.")
@as_json
@click.pass_obj
def set_(
    settings: Settings, /, team_id: str, usual_limits: bool, as_json: bool, **given: object
) -> None:
    """Change what is named; the rest stays.

    \b
    Example:
      bullpen team set dev --delivery aggregate --max-hops 4
    """
    require_person("change teams")
    usual = TeamChange(max_hops=None, max_messages=None, max_cost=None)
    change = usual if usual_limits else TeamChange()
    for name, value in given.items():
        if value is not None and value != ():
            change[name] = value  # type: ignore[literal-required]
    if "delivery" in change:
        change["delivery"] = DeliveryMode(change["delivery"])
    with write_transaction(settings) as tx:
        changed = change_team(tx, team_id, **change)
    print_result(as_json, asdict(changed), f"@{team_id} is changed")
