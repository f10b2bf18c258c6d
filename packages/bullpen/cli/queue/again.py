"""bullpen queue retry and drop: what becomes of messages that are dead, cancelled or expired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.bulk import BulkText, run_each
from bullpen.cli.chosen import bulk_options, parse_selection
from bullpen.cli.confirm import confirm
from bullpen.cli.queue.chosen import print_named, run_filtered
from bullpen.cli.queue.filters import message_filters
from bullpen.core.queue.drop import drop as drop_message
from bullpen.core.queue.retry import retry as retry_message
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState
from bullpen.core.store.transaction import Transaction

FINISHED_STATES = (MessageState.DEAD, MessageState.CANCELLED, MessageState.EXPIRED)
FINISHED_CHOICE = click.Choice([each.value for each in FINISHED_STATES])
STATE_HELP = "Filters choose of those in this state; of the dead, if not said."
FILTERS = ("agent", "error", "kind", "conversation", "channel", "sender", "since", "before")

RETRY_TEXT = BulkText(
    noun="message",
    verb="Retry",
    done="wait again",
    done_one="waits again",
    none="There is no message like that. Next: bullpen queue dead",
)
DROP_TEXT = BulkText(
    noun="message",
    verb="Delete for good",
    done="are deleted",
    done_one="is deleted",
    none="There is no message like that. Next: bullpen queue dead",
)

message_ids_argument = click.argument(
    "named", nargs=-1, metavar="[MESSAGE_ID]...", shell_complete=ids.dead_messages
)


@click.command()
@message_ids_argument
@message_filters(*FILTERS)
@bulk_options(FINISHED_CHOICE, STATE_HELP)
@click.pass_obj
def retry(settings: Settings, /, **given: Any) -> None:  # noqa: ANN401 - ids and filters
    """Try messages again that are dead, cancelled or expired.

    Each takes its old place, its failures forgotten and its deadline lifted. Name them, or choose
    them by filters: then the dead are meant, and the times are those of their deaths.

    \b
    Examples:
      bullpen queue retry cli_a1b2c3d4
      bullpen queue retry --agent coder --error timeout --since 2h --dry-run
      bullpen queue retry --all --yes
    """
    require_person("try messages again")
    _do(settings, RETRY_TEXT, retry_message, given)


@click.command()
@message_ids_argument
@message_filters(*FILTERS)
@bulk_options(FINISHED_CHOICE, STATE_HELP)
@click.pass_obj
def drop(settings: Settings, /, **given: Any) -> None:  # noqa: ANN401 - ids and filters
    """Delete messages for good that are dead, cancelled or expired.

    Name them, or choose them by filters: then the dead are meant, and the times are those of their
    deaths. What the record has of them stays: runs, events, history.

    \b
    Examples:
      bullpen queue drop cli_a1b2c3d4
      bullpen queue drop --agent coder --before 7d --dry-run
    """
    require_person("delete messages")
    _do(settings, DROP_TEXT, drop_message, given)


def _do(
    settings: Settings,
    words: BulkText,
    verb: Callable[[Transaction, str], None],
    given: dict[str, Any],
) -> None:
    chosen = parse_selection(given, words.noun)
    if not chosen.named:
        states = [MessageState(each) for each in chosen.states or (MessageState.DEAD,)]
        run_filtered(settings, words, states, verb, chosen)
    elif chosen.dry_run:
        print_named(settings, words, FINISHED_STATES, chosen)
    else:
        if words is DROP_TEXT:
            confirm(f"{words.verb} {words.of(len(chosen.named))}", chosen.sure)
        run_each(settings, words, chosen.named, verb, as_json=chosen.as_json)
