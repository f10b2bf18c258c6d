"""bullpen queue cancel: messages that nobody wants to be answered any more."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from bullpen.cli import ids
from bullpen.cli.acting import only_people
from bullpen.cli.bulk import Words, run_named
from bullpen.cli.confirm import confirm, dry_run, yes
from bullpen.cli.output import as_json, reading, tell, writing
from bullpen.cli.queue.chosen import Chosen, by_filters, show_named
from bullpen.cli.queue.filters import filters
from bullpen.core.conversations.members import count
from bullpen.core.queue.cancel import cancel as cancel_message
from bullpen.core.queue.cancel import cancel_conversation
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState

# What waits before what runs: nothing begins in the place of what was ended.
OPEN = (MessageState.HELD, MessageState.PENDING, MessageState.PROCESSING)
STATES = click.Choice([each.value for each in OPEN])

WORDS = Words(
    noun="message",
    verb="Cancel",
    done="are cancelled",
    done_one="is cancelled",
    none="There is no message like that which waits, runs or is held. Next: bullpen queue status",
)


@click.command()
@click.argument("message_id", nargs=-1, shell_complete=ids.open_messages)
@filters("agent", "conversation", "channel", "sender", "since", "before")
@click.option("--state", type=STATES, help="Only those in this state.")
@click.option("--all", "everything", is_flag=True, help="All that wait, run or are held.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="So many of them at the most.")
@click.option("--reason", default="cancelled", show_default=True, help="Why, for people.")
@dry_run
@yes
@as_json
@click.pass_obj
def cancel(settings: Settings, /, reason: str, **given: Any) -> None:  # noqa: ANN401 - filters
    """End messages that wait, run or are held; a run of one is ended with it.

    Name them, or choose them by filters, of which a whole conversation is one. They can be tried
    again.

    \b
    Examples:
      bullpen queue cancel cli_a1b2c3d4
      bullpen queue cancel --conversation cli_a1b2c3d4
      bullpen queue cancel --agent coder --before 1d --dry-run
    """
    only_people("cancel messages")
    chosen = Chosen.parse(given)
    verb = partial(cancel_message, reason=reason)
    if chosen.message_ids and chosen.dry_run:
        show_named(settings, WORDS, OPEN, chosen)
    elif chosen.message_ids:
        run_named(settings, WORDS, chosen.message_ids, verb, as_json=chosen.as_json)
    elif chosen.whole_conversation is not None and not chosen.dry_run:
        _end(settings, chosen.whole_conversation, reason, chosen)
    else:
        states = OPEN if chosen.state is None else (MessageState(chosen.state),)
        by_filters(settings, WORDS, states, verb, chosen)


def _end(settings: Settings, conversation: str, reason: str, chosen: Chosen) -> None:
    """All of it in one transaction: nothing of it can hand on meanwhile."""
    with reading(settings) as tx:
        by_state = count(tx, conversation).by_state
    matched = sum(by_state.get(state.value, 0) for state in OPEN)
    if matched:
        confirm(f"{WORDS.verb} {WORDS.of(matched)} of {conversation}", chosen.sure, many=True)
    with writing(settings) as tx:
        done = cancel_conversation(tx, conversation, reason)
    tell(
        chosen.as_json,
        {"dry_run": False, "matched": matched, "done": done, "conversation": conversation},
        f"{WORDS.was_done(done)}, all of {conversation}" if done else WORDS.none,
    )
