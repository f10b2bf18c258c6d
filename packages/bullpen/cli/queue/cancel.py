"""bullpen queue cancel: messages that nobody wants to be answered any more."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from bullpen.cli import ids
from bullpen.cli.acting import only_people
from bullpen.cli.bulk import Words, run_named
from bullpen.cli.chosen import Chosen, choosing, parse
from bullpen.cli.confirm import confirm
from bullpen.cli.output import reading, tell, writing
from bullpen.cli.queue.chosen import by_filters, show_named
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
@click.argument("named", nargs=-1, metavar="[MESSAGE_ID]...", shell_complete=ids.open_messages)
@filters("agent", "conversation", "channel", "sender", "since", "before")
@click.option("--reason", default="cancelled", show_default=True, help="Why, for people.")
@choosing(STATES, "Filters choose of those in this state; of all three, if not said.")
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
    chosen = parse(given, WORDS.noun)
    verb = partial(cancel_message, reason=reason)
    if chosen.named and chosen.dry_run:
        show_named(settings, WORDS, OPEN, chosen)
    elif chosen.named:
        run_named(settings, WORDS, chosen.named, verb, as_json=chosen.as_json)
    elif (whole := _whole_conversation(chosen)) is not None and not chosen.dry_run:
        _end(settings, whole, reason, chosen)
    else:
        states = [each for each in OPEN if not chosen.states or each in chosen.states]
        by_filters(settings, WORDS, states, verb, chosen)


def _whole_conversation(chosen: Chosen) -> str | None:
    """The conversation, if nothing else narrows what is meant."""
    given = [name for name, value in chosen.filters.items() if value is not None]
    if given != ["conversation"] or chosen.states or chosen.limit:
        return None
    return str(chosen.filters["conversation"])


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
