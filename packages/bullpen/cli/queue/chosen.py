"""Work on the messages that are meant: all that filters choose, or those that were named."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from bullpen.cli.bulk import Job, Words, run, show_job
from bullpen.cli.chosen import Chosen
from bullpen.cli.output import reading
from bullpen.cli.queue.filters import selection, up_to_now
from bullpen.cli.queue.lines import dead_rows, rows
from bullpen.core.queue.browse import look_up, of_numbers
from bullpen.core.queue.bulk import each_of
from bullpen.core.queue.walk import Found, Walk, ways_to
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState
from bullpen.core.store.transaction import Transaction


def by_filters(
    settings: Settings,
    words: Words,
    states: Sequence[MessageState],
    verb: Callable[[Transaction, str], None],
    chosen: Chosen,
) -> None:
    """Do it to all that the filters choose, of those that are in these states now."""

    def pieces(tx: Transaction) -> Walk:
        wanted = up_to_now(tx.now, selection(tx.now, chosen.filters))
        return Walk(ways_to(tx, states, wanted), wanted)

    job = Job(
        words=words,
        pieces=pieces,
        do=lambda tx, found: each_of(tx, verb, found),
        rows=_table,
        limit=chosen.limit,
    )
    run(settings, job, sure=chosen.sure, dry_run=chosen.dry_run, as_json=chosen.as_json)


def show_named(
    settings: Settings, words: Words, allowed: Collection[MessageState], chosen: Chosen
) -> None:
    """Show the named ones, and to how many of them it could be done."""
    with reading(settings) as tx:
        found = [look_up(tx, each) for each in chosen.named]
        listed = rows(found, tx.now)
    could = sum(each.status in allowed for each in found)
    show_job(words, could, listed, chosen.as_json)


def _table(tx: Transaction, found: Sequence[Found]) -> Sequence[Sequence[str]]:
    seen = of_numbers(tx, [each.id for each in found])
    if all(each.status == MessageState.DEAD for each in seen):
        return dead_rows(seen, tx.now)
    return rows(seen, tx.now)
