"""bullpen queue cancel: messages that nobody wants to be answered any more."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.bulk import BulkText, run_each
from bullpen.cli.chosen import BulkSelection, bulk_options, parse_selection
from bullpen.cli.confirm import confirm
from bullpen.cli.output import print_result, read_transaction, write_transaction
from bullpen.cli.queue.chosen import print_named, run_filtered
from bullpen.cli.queue.filters import message_filters
from bullpen.core.conversations.members import count_messages
from bullpen.core.queue.cancel import cancel as cancel_message
from bullpen.core.queue.cancel import cancel_conversation
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState

# What waits before what runs: nothing begins in the place of what was ended.
OPEN_STATES = (MessageState.HELD, MessageState.PENDING, MessageState.PROCESSING)
OPEN_CHOICE = click.Choice([each.value for each in OPEN_STATES])

CANCEL_TEXT = BulkText(
    noun="message",
    verb="Cancel",
    done="are cancelled",
    done_one="is cancelled",
    none="There is no message like that which waits, runs or is held. Next: bullpen queue status",
)


@click.command()
@click.argument("named", nargs=-1, metavar="[MESSAGE_ID]...", shell_complete=ids.open_messages)
@message_filters("agent", "conversation", "channel", "sender", "since", "before")
@click.option("--reason", default="cancelled", show_default=True, help="Why, for people.")
@bulk_options(OPEN_CHOICE, "Filters choose of those in this state; of all three, if not said.")
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
    require_person("cancel messages")
    chosen = parse_selection(given, CANCEL_TEXT.noun)
    verb = partial(cancel_message, reason=reason)
    if chosen.named and chosen.dry_run:
        print_named(settings, CANCEL_TEXT, OPEN_STATES, chosen)
    elif chosen.named:
        run_each(settings, CANCEL_TEXT, chosen.named, verb, as_json=chosen.as_json)
    elif (whole := _whole_conversation(chosen)) is not None and not chosen.dry_run:
        _cancel_conversation(settings, whole, reason, chosen)
    else:
        states = [each for each in OPEN_STATES if not chosen.states or each in chosen.states]
        run_filtered(settings, CANCEL_TEXT, states, verb, chosen)


def _whole_conversation(chosen: BulkSelection) -> str | None:
    """The conversation, if nothing else narrows what is meant."""
    given = [name for name, value in chosen.filters.items() if value is not None]
    if given != ["conversation"] or chosen.states or chosen.limit:
        return None
    return str(chosen.filters["conversation"])


def _cancel_conversation(
    settings: Settings, conversation: str, reason: str, chosen: BulkSelection
) -> None:
    """All of it in one transaction: nothing of it can hand on meanwhile."""
    with read_transaction(settings) as tx:
        by_state = count_messages(tx, conversation).by_state
    matched = sum(by_state.get(state.value, 0) for state in OPEN_STATES)
    if matched:
        confirm(
            f"{CANCEL_TEXT.verb} {CANCEL_TEXT.of(matched)} of {conversation}",
            chosen.sure,
            many=True,
        )
    with write_transaction(settings) as tx:
        done = cancel_conversation(tx, conversation, reason)
    print_result(
        chosen.as_json,
        {"dry_run": False, "matched": matched, "done": done, "conversation": conversation},
        f"{CANCEL_TEXT.done_text(done)}, all of {conversation}" if done else CANCEL_TEXT.none,
    )
