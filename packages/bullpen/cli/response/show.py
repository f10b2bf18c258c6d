"""bullpen response show: all that is known of one response."""

from __future__ import annotations

from dataclasses import asdict

import click

from bullpen.cli import ids
from bullpen.cli.output import as_json, print_json, read_transaction
from bullpen.cli.queue.reach import require_visible
from bullpen.cli.response.lines import author, file_names, recipient
from bullpen.cli.response.standing import explain_response, next_steps
from bullpen.cli.visible import one_line, sanitize
from bullpen.core.outbox.browse import ResponseRecord, get_response
from bullpen.core.outbox.hold import find_hold
from bullpen.core.schedules.when import format_time
from bullpen.core.settings import Settings
from bullpen.core.states import ResponseState
from bullpen.core.time_zone import owner_zone_name

QUESTION_CHARS = 200


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
    with read_transaction(settings) as tx:
        found, hold, now = get_response(tx, response_id), find_hold(tx), tx.now
    require_visible(f"response {found.id}", found.agent)
    why = explain_response(found, hold, now)
    if as_json:
        print_json({**asdict(found), "why": why, "next": next_steps(found)})
        return
    zone = owner_zone_name(settings)
    for name, value in _fields(found, zone):
        if value:
            click.echo(f"{name:<10} {value}")
    click.echo(f"\n{sanitize(found.message)}\n")
    click.echo(sanitize(why))
    for line in next_steps(found):
        click.echo(f"Next: {line}", err=True)


def _fields(found: ResponseRecord, zone: str) -> list[tuple[str, str]]:
    pending = found.status == ResponseState.PENDING
    return [
        ("response", str(found.id)),
        ("state", found.status),
        ("from", author(found)),
        ("to", recipient(found)),
        ("answers", one_line(f"{found.message_id} {found.original_message}", QUESTION_CHARS)),
        ("said", format_time(found.created_at, zone)),
        ("arrived", "" if found.acked_at is None else format_time(found.acked_at, zone)),
        ("expires", format_time(found.expires_at, zone) if pending else ""),
        ("tries", str(found.delivery_attempts or "")),
        ("parts sent", str(found.parts_sent or "")),
        ("repeat", "it may have arrived before" if found.possible_duplicate else ""),
        ("files", ", ".join(file_names(found))),
    ]
