"""bullpen queue: what waits, runs and is dead."""

from __future__ import annotations

from collections.abc import Callable

import click

from bullpen.cli.output import as_json, reading, show_json, show_table, writing
from bullpen.core.queue.cancel import cancel as cancel_message
from bullpen.core.queue.cancel import cancel_conversation
from bullpen.core.queue.drop import drop as drop_message
from bullpen.core.queue.hold import let_go as let_go_message
from bullpen.core.queue.hold import let_go_conversation
from bullpen.core.queue.retry import retry as retry_message
from bullpen.core.queue.status import queue_status, waiting_for_people
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState
from bullpen.core.store.transaction import Transaction


@click.group()
def queue() -> None:
    """Look at the queue, and take messages out of it or put them back.

    \b
    Example:
      bullpen queue status
    """


@queue.command()
@as_json
@click.pass_obj
def status(settings: Settings, as_json: bool) -> None:
    """Show how many messages wait, run, are held or dead, and each lane.

    \b
    Example:
      bullpen queue status --json
    """
    with reading(settings) as tx:
        found = queue_status(tx)
    if as_json:
        show_json(found)
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


@queue.command()
@as_json
@click.pass_obj
def held(settings: Settings, as_json: bool) -> None:
    """List the messages that wait for a person, and why.

    \b
    Example:
      bullpen queue held
    """
    _list(settings, MessageState.HELD, as_json, "Nothing waits for a person.")


@queue.command()
@as_json
@click.pass_obj
def dead(settings: Settings, as_json: bool) -> None:
    """List the messages that will not be tried again by themselves, and why.

    \b
    Example:
      bullpen queue dead
    """
    _list(settings, MessageState.DEAD, as_json, "Nothing is dead.")


@queue.command()
@click.argument("message_id", required=False)
@click.option("--conversation", help="All of this conversation instead of one message.")
@click.pass_obj
def cancel(settings: Settings, message_id: str | None, conversation: str | None) -> None:
    """End a message that waits, runs or is held, or a whole conversation.

    \b
    Examples:
      bullpen queue cancel cli_a1b2c3d4
      bullpen queue cancel --conversation cli_a1b2c3d4
    """
    with writing(settings) as tx:
        if conversation is not None:
            count = cancel_conversation(tx, conversation)
            done = f"{count} messages of {conversation} are cancelled"
        else:
            cancel_message(tx, _one(message_id))
            done = f"{message_id} is cancelled"
    click.echo(done)


@queue.command(name="let-go")
@click.argument("message_id", required=False)
@click.option("--conversation", help="All of this conversation instead of one message.")
@click.pass_obj
def let_go(settings: Settings, message_id: str | None, conversation: str | None) -> None:
    """Let a held message go on, or all held ones of a conversation.

    \b
    Examples:
      bullpen queue let-go internal_a1b2c3d4
      bullpen queue let-go --conversation cli_a1b2c3d4
    """
    with writing(settings) as tx:
        if conversation is not None:
            count = let_go_conversation(tx, conversation)
            done = f"{count} messages of {conversation} go on"
        else:
            let_go_message(tx, _one(message_id))
            done = f"{message_id} goes on"
    click.echo(done)


def _one(message_id: str | None) -> str:
    if message_id is None:
        raise click.UsageError("Give a message's id, or --conversation.")
    return message_id


def _list(settings: Settings, state: MessageState, as_json: bool, empty: str) -> None:
    with reading(settings) as tx:
        found = waiting_for_people(tx, state)
    if as_json:
        show_json(found)
        return
    rows = [("MESSAGE", "AGENT", "CONVERSATION", "WHY")]
    rows += [(each.message_id, each.agent, each.conversation_id, each.why) for each in found]
    show_table(rows, empty)


def _verb(name: str, verb: Callable[[Transaction, str], None], help_: str, done: str) -> None:
    @queue.command(name=name, help=f"{help_}\n\n\b\nExample:\n  bullpen queue {name} cli_a1b2c3d4")
    @click.argument("message_id")
    @click.pass_obj
    def command(settings: Settings, message_id: str) -> None:
        with writing(settings) as tx:
            verb(tx, message_id)
        click.echo(f"{message_id} {done}")


_verb("retry", retry_message, "Try a dead, cancelled or expired message again.", "waits again")
_verb("drop", drop_message, "Delete a dead, cancelled or expired message.", "is deleted")
