"""bullpen team remove."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.confirm import confirm, yes
from bullpen.cli.orphans import orphan_notices
from bullpen.cli.output import as_json, print_result, read_transaction, write_transaction
from bullpen.core.roster.leaving import schedules_orphaned_by_team
from bullpen.core.roster.team_removal import remove_team
from bullpen.core.roster.teams import lock_team
from bullpen.core.settings import Settings


@click.command()
@click.argument("team_id", nargs=-1, required=True, shell_complete=ids.teams)
@yes
@as_json
@click.pass_obj
def remove(settings: Settings, team_id: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Disband teams; their agents stay, and so does what was said in their rooms.

    \b
    Example:
      bullpen team remove dev
    """
    require_person("disband teams")
    names = sorted(set(team_id))
    with read_transaction(settings) as tx:
        found = {each: schedules_orphaned_by_team(tx, each) for each in names}
    confirm("\n".join(_what(each, len(found[each])) for each in names), yes)
    with write_transaction(settings) as tx:
        for each in names:
            lock_team(tx, each)
            found[each] = schedules_orphaned_by_team(tx, each)
            remove_team(tx, each)
    said = [f"@{each} is disbanded; its agents stay" for each in names]
    paused = [schedule for each in names for schedule in found[each]]
    document = {"removed": names, "schedules": sorted(paused)}
    print_result(as_json, document, *said, *orphan_notices(paused))


def _what(team: str, schedules: int) -> str:
    paused = f" ({schedules} schedule{'s' if schedules > 1 else ''} paused)" if schedules else ""
    return f"Disband @{team}{paused}"
