"""bullpen response read: what came to whoever sits here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import click

from bullpen.cli.acting import only_people
from bullpen.cli.output import MOST, as_json, reading, show_json, writing
from bullpen.cli.response import CLI
from bullpen.cli.response.lines import author, files
from bullpen.cli.visible import visible
from bullpen.core.errors import IllegalMove
from bullpen.core.message import UNSENT
from bullpen.core.outbox.browse import SeenResponse, to_send
from bullpen.core.outbox.person import mark_read
from bullpen.core.schedules.when import written
from bullpen.core.settings import Settings
from bullpen.core.time_zone import owner_zone


@click.command()
@click.option(
    "--channel",
    type=click.Choice(sorted(UNSENT)),
    default=CLI,
    show_default=True,
    help="Where it lies until somebody reads it.",
)
@as_json
@click.pass_obj
def read(settings: Settings, channel: str, as_json: bool) -> None:
    """Show what waits to be read, the oldest first; afterwards it has been read.

    It is what came to you unasked, or after you had stopped waiting: notices of Bullpen's, answers
    of schedules, what heartbeats had to say.

    \b
    Example:
      bullpen response read
    """
    only_people("read what is for people")
    with reading(settings) as tx:
        found = to_send(tx, channel, 0, MOST)
    if as_json:
        show_json(found)
    elif found:
        _show(found, owner_zone(settings))
    else:
        click.echo("There is nothing that you have not read.")
    with writing(settings) as tx:  # now that it was shown
        for each in found:
            with suppress(IllegalMove):  # somebody else was quicker
                mark_read(tx, each.id)
    if len(found) == MOST:
        click.echo("There is more. Next: bullpen response read", err=True)


def _show(found: Sequence[SeenResponse], here: str) -> None:
    for each in found:
        named = [f"[file: {file}]" for file in files(each)]
        text = "\n".join([*([each.message] if each.message else []), *named])
        click.echo(f"{written(each.created_at, here)}  {author(each)}: {visible(text)}")
