"""bullpen response retry and drop: responses that did not arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from bullpen.cli import completion
from bullpen.cli.bulk import (
    BulkNoun,
    BulkText,
    BulkVerb,
    bulk_options,
    parse_selection,
    run_bulk,
)
from bullpen.cli.command import Result, command
from bullpen.cli.filters import response_filters
from bullpen.cli.output import echo
from bullpen.cli.response import response_rows
from bullpen.core.bulk import apply_to_responses
from bullpen.core.inspect.responses import ResponseRecord, get_response, response_scans
from bullpen.core.outbox.manage import drop_response, retry_response
from bullpen.core.settings import Settings
from bullpen.core.states import OPEN_RESPONSE_STATES, UNDELIVERED_STATES, ResponseState
from bullpen.core.store.scan import RowRef
from bullpen.core.store.transaction import Transaction

FILTERS = ("channel", "agent", "sender", "error", "since", "before")
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


def _batch_rows(tx: Transaction, batch: Sequence[RowRef]) -> list[tuple[str, ...]]:
    return response_rows([get_response(tx, str(each.id)) for each in batch], tx.now)


RESPONSES: BulkNoun[ResponseState, ResponseRecord] = BulkNoun(
    scans=lambda _, states, selection: response_scans(states, selection),
    get=get_response,
    rows=response_rows,
    batch_rows=_batch_rows,
)


def _retry_one(tx: Transaction, number: str) -> None:
    response = get_response(tx, number)
    retry_response(tx, response.id)
    if response.status == ResponseState.UNKNOWN:
        echo(f"{number}: {DUPLICATE_WARNING}", err=True)


RETRY: BulkVerb[ResponseState, ResponseRecord] = BulkVerb(
    text=RETRY_TEXT,
    noun=RESPONSES,
    states=UNDELIVERED_STATES,
    default_states=(ResponseState.DEAD,),
    apply=_retry_one,
    apply_batch=lambda tx, batch: apply_to_responses(tx, retry_response, batch),
)
DROP: BulkVerb[ResponseState, ResponseRecord] = BulkVerb(
    text=DROP_TEXT,
    noun=RESPONSES,
    states=OPEN_RESPONSE_STATES,
    default_states=OPEN_RESPONSE_STATES,
    apply=lambda tx, number: drop_response(tx, get_response(tx, number).id),
    apply_batch=lambda tx, batch: apply_to_responses(tx, drop_response, batch),
    confirms_ids=True,
)


@command(people_only="send answers again")
@click.argument(
    "named", nargs=-1, metavar="[RESPONSE_ID]...", shell_complete=completion.lost_responses
)
@response_filters(*FILTERS)
@bulk_options(
    UNDELIVERED_STATES, "Filters choose of those in this state; of the dead, if not said."
)
def retry(settings: Settings, /, **options: Any) -> Result:  # noqa: ANN401 - ids and filters
    """Deliver responses once more that are dead, or of which nobody knows whether they arrived.

    Name them, or choose them by filters: then the dead are meant. With `--state unknown` those are
    that may have arrived before; they are sent as possible duplicates, and say so.

    \b
    Examples:
      bullpen response retry 12
      bullpen response retry --channel telegram --since 2h --dry-run
      bullpen response retry --state unknown --all
    """
    selection = parse_selection(options, RETRY_TEXT.noun)
    verb = RETRY
    if ResponseState.UNKNOWN in RETRY.selected_states(selection):
        verb = replace(RETRY, text=replace(RETRY_TEXT, warning=f"{DUPLICATE_WARNING}\n"))
    return run_bulk(settings, verb, selection)


@command(people_only="keep answers from people")
@click.argument(
    "named", nargs=-1, metavar="[RESPONSE_ID]...", shell_complete=completion.undelivered_responses
)
@response_filters(*FILTERS)
@bulk_options(OPEN_RESPONSE_STATES, "Filters choose of those in this state; of both, if not said.")
def drop(settings: Settings, /, **options: Any) -> Result:  # noqa: ANN401 - ids and filters
    """Set responses aside: they are not delivered any more, and kept as dead.

    Name them, or choose them by filters: then all that are pending or unknown are meant.

    \b
    Examples:
      bullpen response drop 12
      bullpen response drop --channel sms --before 12h --dry-run
    """
    return run_bulk(settings, DROP, parse_selection(options, DROP_TEXT.noun))
