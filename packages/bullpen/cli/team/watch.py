"""bullpen team watch: the agents at work, live."""

from __future__ import annotations

import sys
from zoneinfo import ZoneInfo

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_json, read_transaction
from bullpen.cli.views.terminal import require_terminal
from bullpen.core.settings import Settings
from bullpen.core.time_zone import owner_zone_name, start_of_day


@click.command()
@click.argument("team_id", metavar="[TEAM]", required=False, shell_complete=ids.teams)
@as_json
@click.pass_obj
def watch(settings: Settings, team_id: str | None, as_json: bool) -> None:
    """Watch the agents of a team at work, or all agents. With --json print how they stand now.

    \b
    Keys: ↑ ↓ choose an agent, enter looks at it, p pauses it, r lets it work again, ? explains,
    q leaves.

    \b
    Examples:
      bullpen team watch
      bullpen team watch dev
      bullpen team watch dev --json
    """
    from bullpen.core.company.spent import last_run_before, run_totals_since
    from bullpen.core.company.work import get_company_status

    require_person("watch the whole company")
    zone = ZoneInfo(owner_zone_name(settings))
    with read_transaction(
        settings
    ) as tx:  # a name that is wrong is told before the screen is taken
        company = get_company_status(tx, team_id)
        day = start_of_day(tx.now, zone)
        spent = run_totals_since(tx, day, last_run_before(tx, day))
    if as_json:
        from bullpen.cli.views.document import company_fields

        print_json(company_fields(company, spent))
        return
    require_terminal(f"bullpen team show {team_id}" if team_id else "bullpen agent list")
    from bullpen.cli.views.live import run_view
    from bullpen.cli.views.watch import WatchView

    sys.exit(run_view(WatchView(settings, team_id, zone)))
