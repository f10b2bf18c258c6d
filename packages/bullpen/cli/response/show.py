"""bullpen response show: all that is known of one response."""

from __future__ import annotations

from dataclasses import asdict

import click

from bullpen.cli import ids
from bullpen.cli.output import as_json, reading, show_json
from bullpen.cli.queue.reach import check_reached
from bullpen.cli.response.lines import author, files, to
from bullpen.cli.response.standing import next_steps, standing
from bullpen.cli.visible import one_line, visible
from bullpen.core.outbox.browse import SeenResponse, look_up_response
from bullpen.core.outbox.hold import find_hold
from bullpen.core.schedules.when import written
from bullpen.core.settings import Settings
from bullpen.core.states import ResponseState
from bullpen.core.time_zone import owner_zone

ASKED = 200


@click.command()
@click.argument("response_id", shell_complete=ids.responses)
@as_json
@click.pass_obj
def show(settings: Settings, response_id: str, as_json: bool) -> None:
    """Show one response, archived or not: its text, and how far it came on its way.

    \b
    Example:
      bullpen response show 12
    """
    with reading(settings) as tx:
        found, hold, now = look_up_response(tx, response_id), find_hold(tx), tx.now
    check_reached(f"response {found.id}", found.agent)
    why = standing(found, hold, now)
    if as_json:
        show_json({**asdict(found), "why": why, "next": next_steps(found)})
        return
    zone = owner_zone(settings)
    for name, value in _fields(found, zone):
        if value:
            click.echo(f"{name:<10} {value}")
    click.echo(f"\n{visible(found.message)}\n")
    click.echo(visible(why))
    for line in next_steps(found):
        click.echo(f"Next: {line}", err=True)


def _fields(found: SeenResponse, zone: str) -> list[tuple[str, str]]:
    pending = found.status == ResponseState.PENDING
    return [
        ("response", str(found.id)),
        ("state", found.status),
        ("from", author(found)),
        ("to", to(found)),
        ("answers", one_line(f"{found.message_id} {found.original_message}", ASKED)),
        ("said", written(found.created_at, zone)),
        ("arrived", "" if found.acked_at is None else written(found.acked_at, zone)),
        ("expires", written(found.expires_at, zone) if pending else ""),
        ("tries", str(found.delivery_attempts or "")),
        ("parts sent", str(found.parts_sent or "")),
        ("repeat", "it may have arrived before" if found.possible_duplicate else ""),
        ("files", ", ".join(files(found))),
    ]
