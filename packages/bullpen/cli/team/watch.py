"""bullpen team watch: the agents at work, live."""

from __future__ import annotations

import sys
from zoneinfo import ZoneInfo

import click

from bullpen.cli import ids
from bullpen.cli.acting import only_people
from bullpen.cli.output import as_json, reading, show_json
from bullpen.cli.views.terminal import need_terminal
from bullpen.core.settings import Settings
from bullpen.core.time_zone import midnight, owner_zone


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
    from bullpen.core.company.spent import last_run_before, spent_since
    from bullpen.core.company.work import look_at_company

    only_people("watch the whole company")
    zone = ZoneInfo(owner_zone(settings))
    with reading(settings) as tx:  # a name that is wrong is told before the screen is taken
        company = look_at_company(tx, team_id)
        day = midnight(tx.now, zone)
        spent = spent_since(tx, day, last_run_before(tx, day))
    if as_json:
        from bullpen.cli.views.document import document_of

        show_json(document_of(company, spent))
        return
    need_terminal(f"bullpen team show {team_id}" if team_id else "bullpen agent list")
    from bullpen.cli.views.live import show
    from bullpen.cli.views.watch import WatchView

    sys.exit(show(WatchView(settings, team_id, zone)))
