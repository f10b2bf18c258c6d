"""bullpen queue let-go: held messages go on."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.bulk import BulkText, run_each
from bullpen.cli.output import as_json, print_result, write_transaction
from bullpen.core.queue.hold import resume as let_go_message
from bullpen.core.queue.hold import resume_conversation
from bullpen.core.settings import Settings

RESUME_TEXT = BulkText(
    noun="message",
    verb="Let go",
    done="go on",
    done_one="goes on",
    none="Nothing of it is held. Next: bullpen queue held",
)


@click.command(name="let-go")
@click.argument("message_id", nargs=-1, shell_complete=ids.held_messages)
@click.option(
    "--conversation",
    shell_complete=ids.conversation_ids,
    help="All that is held of this conversation.",
)
@as_json
@click.pass_obj
def let_go(
    settings: Settings, message_id: tuple[str, ...], conversation: str | None, as_json: bool
) -> None:
    """Let held messages go on, or all held ones of a conversation.

    \b
    Examples:
      bullpen queue let-go internal_a1b2c3d4
      bullpen queue let-go --conversation cli_a1b2c3d4
    """
    require_person("let held messages go on")
    if bool(message_id) == (conversation is not None):
        raise click.UsageError("Give messages' ids, or --conversation. See: bullpen queue held")
    if conversation is None:
        run_each(settings, RESUME_TEXT, message_id, let_go_message, as_json=as_json)
        return
    with write_transaction(settings) as tx:
        done = resume_conversation(tx, conversation)
    said = f"{RESUME_TEXT.done_text(done)}, all of {conversation}" if done else RESUME_TEXT.none
    print_result(as_json, {"done": done, "conversation": conversation}, said)
