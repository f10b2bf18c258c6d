"""bullpen queue causes: what messages died of."""

from __future__ import annotations

import click

from bullpen.cli.output import as_json, limit_option, print_json, print_table, read_transaction
from bullpen.cli.span import format_duration
from bullpen.cli.visible import one_line
from bullpen.core.queue.causes import list_failure_groups
from bullpen.core.settings import Settings

CAUSES_HEADING = ("KIND", "DEATHS", "FIRST", "LAST", "ERROR")
ERROR_CHARS = 160
NO_CAUSES = "Nothing has died of anything yet; deaths are counted every minute while Bullpen runs."


@click.command()
@limit_option()
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
    with read_transaction(settings) as tx:
        found, now = list_failure_groups(tx, limit), tx.now
    if as_json:
        print_json(found)
        return
    rows: list[tuple[str, ...]] = [CAUSES_HEADING]
    rows += [
        (
            *(each.kind, str(each.deaths), f"{format_duration(now - each.first_at)} ago"),
            *(f"{format_duration(now - each.last_at)} ago", one_line(each.error, ERROR_CHARS)),
        )
        for each in found
    ]
    print_table(rows, NO_CAUSES)
    if found:
        click.echo('Next: bullpen queue retry --error "A PART OF IT" --dry-run', err=True)
