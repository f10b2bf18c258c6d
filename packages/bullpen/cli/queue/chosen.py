"""Work on the messages that are meant: all that filters choose, or those that were named."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from bullpen.cli.bulk import BulkJob, BulkText, print_plan, run_bulk
from bullpen.cli.chosen import BulkSelection
from bullpen.cli.output import read_transaction
from bullpen.cli.queue.filters import message_selection, selection_until_now
from bullpen.cli.queue.lines import dead_rows, message_rows
from bullpen.core.queue.browse import get_message, list_messages_by_number
from bullpen.core.queue.bulk import apply_to_messages
from bullpen.core.queue.walk import BatchCursor, RowRef, message_scans
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState
from bullpen.core.store.transaction import Transaction


def run_filtered(
    settings: Settings,
    words: BulkText,
    states: Sequence[MessageState],
    verb: Callable[[Transaction, str], None],
    chosen: BulkSelection,
) -> None:
    """Do it to all that the filters choose, of those that are in these states now."""

    def pieces(tx: Transaction) -> BatchCursor:
        wanted = selection_until_now(tx.now, message_selection(tx.now, chosen.filters))
        return BatchCursor(message_scans(tx, states, wanted), wanted)

    job = BulkJob(
        words=words,
        pieces=pieces,
        do=lambda tx, found: apply_to_messages(tx, verb, found),
        rows=_table,
        limit=chosen.limit,
    )
    run_bulk(settings, job, sure=chosen.sure, dry_run=chosen.dry_run, as_json=chosen.as_json)


def print_named(
    settings: Settings, words: BulkText, allowed: Collection[MessageState], chosen: BulkSelection
) -> None:
    """Show the named ones, and to how many of them it could be done."""
    with read_transaction(settings) as tx:
        found = [get_message(tx, each) for each in chosen.named]
        listed = message_rows(found, tx.now)
    could = sum(each.status in allowed for each in found)
    print_plan(words, could, listed, chosen.as_json)


def _table(tx: Transaction, found: Sequence[RowRef]) -> Sequence[Sequence[str]]:
    seen = list_messages_by_number(tx, [each.id for each in found])
    if all(each.status == MessageState.DEAD for each in seen):
        return dead_rows(seen, tx.now)
    return message_rows(seen, tx.now)
