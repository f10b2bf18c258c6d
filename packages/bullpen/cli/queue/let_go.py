"""bullpen queue let-go: held messages go on."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.acting import only_people
from bullpen.cli.bulk import Words, run_named
from bullpen.cli.output import as_json, tell, writing
from bullpen.core.queue.hold import let_go as let_go_message
from bullpen.core.queue.hold import let_go_conversation
from bullpen.core.settings import Settings

WORDS = Words(
    noun="message",
    verb="Let go",
    done="go on",
    done_one="goes on",
    none="Nothing of it is held. Next: bullpen queue held",
)


@click.command(name="let-go")
@click.argument("message_id", nargs=-1, shell_complete=ids.held_messages)
@click.option(
    "--conversation", shell_complete=ids.begun, help="All that is held of this conversation."
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
    only_people("let held messages go on")
    if bool(message_id) == (conversation is not None):
        raise click.UsageError("Give messages' ids, or --conversation. See: bullpen queue held")
    if conversation is None:
        run_named(settings, WORDS, message_id, let_go_message, as_json=as_json)
        return
    with writing(settings) as tx:
        done = let_go_conversation(tx, conversation)
    said = f"{WORDS.was_done(done)}, all of {conversation}" if done else WORDS.none
    tell(as_json, {"done": done, "conversation": conversation}, said)
