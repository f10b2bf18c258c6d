"""bullpen queue: what waits, runs and is dead."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

import click

from bullpen.core.queue.cancel import cancel as cancel_message
from bullpen.core.queue.drop import drop as drop_message
from bullpen.core.queue.retry import retry as retry_message
from bullpen.core.queue.status import queue_status
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.core.store.transaction import Transaction


@click.group()
def queue() -> None:
    """Look at the queue, and take messages out of it or put them back.

    \b
    Example:
      bullpen queue status
    """


@queue.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def status(settings: Settings, as_json: bool) -> None:
    """Show how many messages wait, run, are held or dead, and each lane.

    \b
    Example:
      bullpen queue status --json
    """
    store = open_store(settings)
    with store.read() as tx:
        found = queue_status(tx)
    store.close()
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    click.echo(
        f"pending {found.pending}  processing {found.processing}  held {found.held}  "
        f"dead {found.dead}  outgoing {found.outgoing}"
    )
    for lane in found.lanes:
        why = f" ({lane.reason})" if lane.reason else ""
        click.echo(
            f"  {lane.agent:<32} {lane.state}{why}  pending {lane.pending}  "
            f"processing {lane.processing}"
        )


def _verb(name: str, verb: Callable[[Transaction, str], None], help_: str, done: str) -> None:
    @queue.command(name=name, help=f"{help_}\n\n\b\nExample:\n  bullpen queue {name} cli_a1b2c3d4")
    @click.argument("message_id")
    @click.pass_obj
    def command(settings: Settings, message_id: str) -> None:
        store = open_store(settings)
        try:
            with store.write() as tx:
                verb(tx, message_id)
        finally:
            store.close()
        click.echo(f"{message_id} {done}")


_verb("cancel", cancel_message, "End a message that waits, runs or is held.", "is cancelled")
_verb("retry", retry_message, "Try a dead, cancelled or expired message again.", "waits again")
_verb("drop", drop_message, "Delete a dead, cancelled or expired message.", "is deleted")
