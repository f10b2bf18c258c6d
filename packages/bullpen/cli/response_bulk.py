"""bullpen response retry, ack and drop: responses that were not delivered."""

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
from bullpen.core.inspect.responses import (
    ResponseRecord,
    find_response,
    get_response,
    response_scans,
)
from bullpen.core.outbox.manage import ack_response, drop_response, retry_response
from bullpen.core.settings import Settings
from bullpen.core.states import OPEN_RESPONSE_STATES, UNDELIVERED_STATES, ResponseState
from bullpen.core.store.scan import RowRef
from bullpen.core.store.transaction import Transaction

STATE_HELP = "Select responses in this state. Repeatable."
FILTERS = ("channel", "agent", "sender", "error", "since", "before")
DUPLICATE_WARNING = (
    "An unknown response may already have been delivered: it is sent as a possible duplicate, "
    "with a note to the person."
)

RETRY_TEXT = BulkText(
    noun="response",
    verb="Retry",
    done="Retried",
    none="No responses match. Next: bullpen response list --state dead",
)
DROP_TEXT = BulkText(
    noun="response",
    verb="Drop",
    done="Dropped",
    none="No responses match. Next: bullpen response list --state pending",
    note=" Dropped responses are dead and are not delivered.",
)
ACK_TEXT = BulkText(
    noun="response",
    verb="Ack",
    done="Acked",
    none="No responses match. Next: bullpen response list --state pending",
)


def _batch_rows(tx: Transaction, batch: Sequence[RowRef]) -> list[tuple[str, ...]]:
    return response_rows([get_response(tx, str(each.id)) for each in batch], tx.now)


RESPONSES: BulkNoun[ResponseState, ResponseRecord] = BulkNoun(
    scans=lambda _, states, selection: response_scans(states, selection),
    get=find_response,
    rows=response_rows,
    batch_rows=_batch_rows,
)


def _retry_one(tx: Transaction, id_: str) -> None:
    response = find_response(tx, id_)
    retry_response(tx, response.id)
    if response.status == ResponseState.UNKNOWN:
        echo(f"{id_}: {DUPLICATE_WARNING}", err=True)


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
    apply=lambda tx, id_: drop_response(tx, find_response(tx, id_).id),
    apply_batch=lambda tx, batch: apply_to_responses(tx, drop_response, batch),
    confirms_ids=True,
)
ACK: BulkVerb[ResponseState, ResponseRecord] = BulkVerb(
    text=ACK_TEXT,
    noun=RESPONSES,
    states=OPEN_RESPONSE_STATES,
    default_states=OPEN_RESPONSE_STATES,
    apply=lambda tx, id_: ack_response(tx, find_response(tx, id_).id),
    apply_batch=lambda tx, batch: apply_to_responses(tx, ack_response, batch),
)


@command(people_only="retry responses")
@click.argument("named", nargs=-1, metavar="[ID]...", shell_complete=completion.lost_responses)
@response_filters(*FILTERS)
@bulk_options(UNDELIVERED_STATES, STATE_HELP, default="dead")
def retry(settings: Settings, /, **options: Any) -> Result:  # noqa: ANN401 - ids and filters
    """Retry dead or unknown responses.

    Give ids or numbers, or select responses by filters. Filters select dead responses unless
    --state is given. An unknown response may already have been delivered: it is sent as a possible
    duplicate, with a note to the person.

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


@command(people_only="drop responses")
@click.argument(
    "named", nargs=-1, metavar="[ID]...", shell_complete=completion.undelivered_responses
)
@response_filters(*FILTERS)
@bulk_options(OPEN_RESPONSE_STATES, STATE_HELP, default="pending and unknown")
def drop(settings: Settings, /, **options: Any) -> Result:  # noqa: ANN401 - ids and filters
    """Drop pending or unknown responses: they become dead.

    Give ids or numbers, or select responses by filters. A dropped response is not delivered; it can
    be retried.

    \b
    Examples:
      bullpen response drop 12
      bullpen response drop --channel sms --before 12h --dry-run
    """
    return run_bulk(settings, DROP, parse_selection(options, DROP_TEXT.noun))


@command(people_only="ack responses")
@click.argument(
    "named", nargs=-1, metavar="[ID]...", shell_complete=completion.undelivered_responses
)
@response_filters(*FILTERS)
@bulk_options(OPEN_RESPONSE_STATES, STATE_HELP, default="pending and unknown")
def ack(settings: Settings, /, **options: Any) -> Result:  # noqa: ANN401 - ids and filters
    """Ack pending or unknown responses.

    Acked responses count as delivered and are not sent. Give ids or numbers, or select responses
    by filters.

    \b
    Examples:
      bullpen response ack 12
      bullpen response ack --state unknown --channel telegram --dry-run
    """
    return run_bulk(settings, ACK, parse_selection(options, ACK_TEXT.noun))
