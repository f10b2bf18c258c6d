"""bullpen queue causes: what messages died of."""

from __future__ import annotations

import click

from bullpen.cli.output import as_json, how_many, reading, show_json, show_table
from bullpen.cli.span import span
from bullpen.cli.visible import one_line
from bullpen.core.queue.causes import newest_causes
from bullpen.core.settings import Settings

HEADING = ("KIND", "DEATHS", "FIRST", "LAST", "ERROR")
ERROR = 160
NONE = "Nothing has died of anything yet; deaths are counted every minute while Bullpen runs."


@click.command()
@how_many()
@as_json
@click.pass_obj
def causes(settings: Settings, limit: int, as_json: bool) -> None:
    """Show what messages died of, and how many: the cause of the latest death first.

    Errors that differ in numbers and ids alone are one cause. Its deaths are counted for good,
    whatever became of the messages afterwards.

    \b
    Examples:
      bullpen queue causes
      bullpen queue retry --error "connection refused" --dry-run
    """
    with reading(settings) as tx:
        found, now = newest_causes(tx, limit), tx.now
    if as_json:
        show_json(found)
        return
    rows: list[tuple[str, ...]] = [HEADING]
    rows += [
        (
            *(each.kind, str(each.deaths), f"{span(now - each.first_at)} ago"),
            *(f"{span(now - each.last_at)} ago", one_line(each.error, ERROR)),
        )
        for each in found
    ]
    show_table(rows, NONE)
    if found:
        click.echo('Next: bullpen queue retry --error "A PART OF IT" --dry-run', err=True)
