"""bullpen response retry and drop: what becomes of responses that did not get there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import click

from bullpen.cli import completion
from bullpen.cli.bulk import BulkJob, BulkText, print_plan, run_bulk, run_each
from bullpen.cli.command import read_transaction, require_person
from bullpen.cli.options import (
    BulkSelection,
    bulk_options,
    message_selection,
    parse_selection,
    response_filters,
    selection_until_now,
)
from bullpen.cli.output import confirm
from bullpen.cli.response import response_rows
from bullpen.core.bulk import apply_to_responses
from bullpen.core.inspect.responses import get_response, response_scans
from bullpen.core.outbox.manage import drop_response, retry_response
from bullpen.core.settings import Settings
from bullpen.core.states import ResponseState
from bullpen.core.store.scan import BatchCursor, RowRef
from bullpen.core.store.transaction import Transaction

FILTERS = ("channel", "agent", "sender", "error", "since", "before")
LOST_STATES = (ResponseState.DEAD, ResponseState.UNKNOWN)
UNDELIVERED_STATES = (ResponseState.PENDING, ResponseState.UNKNOWN)
DUPLICATE_WARNING = (
    "What is unknown may have arrived before: it is sent as a possible duplicate, and says so."
)

RETRY_TEXT = BulkText(
    noun="response",
    verb="Send again",
    done="are on their way again",
    done_one="is on its way again",
    none="There is no response like that. Next: bullpen response list --state dead",
)
DROP_TEXT = BulkText(
    noun="response",
    verb="Set aside",
    done="are set aside: they are not delivered any more",
    done_one="is set aside: it is not delivered any more",
    none="There is no response like that. Next: bullpen response list --state pending",
)

Verb = Callable[[Transaction, int], None]


@click.command()
@click.argument(
    "named", nargs=-1, metavar="[RESPONSE_ID]...", shell_complete=completion.lost_responses
)
@response_filters(*FILTERS)
@bulk_options(
    click.Choice([each.value for each in LOST_STATES]),
    "Filters choose of those in this state; of the dead, if not said.",
)
@click.pass_obj
def retry(settings: Settings, /, **given: Any) -> None:  # noqa: ANN401 - ids and filters
    """Deliver responses once more that are dead, or of which nobody knows whether they arrived.

    Name them, or choose them by filters: then the dead are meant. With `--state unknown` those are
    that may have arrived before; they are sent as possible duplicates, and say so.

    \b
    Examples:
      bullpen response retry 12
      bullpen response retry --channel telegram --since 2h --dry-run
      bullpen response retry --state unknown --all
    """
    require_person("send answers again")
    chosen = parse_selection(given, RETRY_TEXT.noun)
    states = [ResponseState(each) for each in chosen.states or (ResponseState.DEAD,)]
    if chosen.named:
        _named(settings, RETRY_TEXT, retry_response, LOST_STATES, chosen)
        return
    unsure = ResponseState.UNKNOWN in states
    words = replace(RETRY_TEXT, warning=f"{DUPLICATE_WARNING}\n") if unsure else RETRY_TEXT
    _by_filters(settings, words, states, retry_response, chosen)


@click.command()
@click.argument(
    "named", nargs=-1, metavar="[RESPONSE_ID]...", shell_complete=completion.undelivered_responses
)
@response_filters(*FILTERS)
@bulk_options(
    click.Choice([each.value for each in UNDELIVERED_STATES]),
    "Filters choose of those in this state; of both, if not said.",
)
@click.pass_obj
def drop(settings: Settings, /, **given: Any) -> None:  # noqa: ANN401 - ids and filters
    """Set responses aside: they are not delivered any more, and kept as dead.

    Name them, or choose them by filters: then all that are pending or unknown are meant.

    \b
    Examples:
      bullpen response drop 12
      bullpen response drop --channel sms --before 12h --dry-run
    """
    require_person("keep answers from people")
    chosen = parse_selection(given, DROP_TEXT.noun)
    states = [each for each in UNDELIVERED_STATES if not chosen.states or each in chosen.states]
    if chosen.named:
        _named(settings, DROP_TEXT, drop_response, UNDELIVERED_STATES, chosen)
    else:
        _by_filters(settings, DROP_TEXT, states, drop_response, chosen)


def _by_filters(
    settings: Settings,
    words: BulkText,
    states: Sequence[ResponseState],
    verb: Verb,
    chosen: BulkSelection,
) -> None:
    def pieces(tx: Transaction) -> BatchCursor:
        wanted = selection_until_now(tx.now, message_selection(tx.now, chosen.filters))
        return BatchCursor(response_scans(states, wanted), wanted)

    job = BulkJob(
        words=words,
        pieces=pieces,
        do=lambda tx, found: apply_to_responses(tx, verb, found),
        rows=_table,
        limit=chosen.limit,
    )
    run_bulk(settings, job, sure=chosen.sure, dry_run=chosen.dry_run, as_json=chosen.as_json)


def _named(
    settings: Settings,
    words: BulkText,
    verb: Verb,
    allowed: Sequence[ResponseState],
    chosen: BulkSelection,
) -> None:
    with read_transaction(settings) as tx:
        found = [get_response(tx, each) for each in chosen.named] if chosen.dry_run else []
        listed = response_rows(found, tx.now)
    if chosen.dry_run:
        could = sum(each.status in allowed for each in found)
        print_plan(words, could, listed, chosen.as_json)
        return
    if words is DROP_TEXT:
        confirm(f"{words.verb} {words.of(len(chosen.named))}", chosen.sure)

    def each(tx: Transaction, number: str) -> None:
        seen = get_response(tx, number)
        verb(tx, seen.id)
        if words is RETRY_TEXT and seen.status == ResponseState.UNKNOWN:
            click.echo(f"{number}: {DUPLICATE_WARNING}", err=True)

    run_each(settings, words, chosen.named, each, as_json=chosen.as_json)


def _table(tx: Transaction, found: Sequence[RowRef]) -> Sequence[Sequence[str]]:
    return response_rows([get_response(tx, str(each.id)) for each in found], tx.now)
