"""bullpen response retry and drop: what becomes of responses that did not get there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import click

from bullpen.cli import ids
from bullpen.cli.acting import only_people
from bullpen.cli.bulk import Job, Words, run, run_named, show_job
from bullpen.cli.chosen import Chosen, choosing, parse
from bullpen.cli.confirm import confirm
from bullpen.cli.output import reading
from bullpen.cli.queue.filters import selection, up_to_now
from bullpen.cli.response.filters import filters
from bullpen.cli.response.lines import rows
from bullpen.core.outbox.browse import look_up_response
from bullpen.core.outbox.bulk import each_response
from bullpen.core.outbox.person import give_up, send_again
from bullpen.core.outbox.roads import ways_to_responses
from bullpen.core.queue.walk import Found, Walk
from bullpen.core.settings import Settings
from bullpen.core.states import ResponseState
from bullpen.core.store.transaction import Transaction

FILTERS = ("channel", "agent", "sender", "error", "since", "before")
LOST = (ResponseState.DEAD, ResponseState.UNKNOWN)
ON_THEIR_WAY = (ResponseState.PENDING, ResponseState.UNKNOWN)
REPEATED = (
    "What is unknown may have arrived before: it is sent as a possible duplicate, and says so."
)

RETRY = Words(
    noun="response",
    verb="Send again",
    done="are on their way again",
    done_one="is on its way again",
    none="There is no response like that. Next: bullpen response list --state dead",
)
DROP = Words(
    noun="response",
    verb="Set aside",
    done="are set aside: they are not delivered any more",
    done_one="is set aside: it is not delivered any more",
    none="There is no response like that. Next: bullpen response list --state pending",
)

Verb = Callable[[Transaction, int], None]


@click.command()
@click.argument("named", nargs=-1, metavar="[RESPONSE_ID]...", shell_complete=ids.lost_responses)
@filters(*FILTERS)
@choosing(
    click.Choice([each.value for each in LOST]),
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
    only_people("send answers again")
    chosen = parse(given, RETRY.noun)
    states = [ResponseState(each) for each in chosen.states or (ResponseState.DEAD,)]
    if chosen.named:
        _named(settings, RETRY, send_again, LOST, chosen)
        return
    unsure = ResponseState.UNKNOWN in states
    words = replace(RETRY, warning=f"{REPEATED}\n") if unsure else RETRY
    _by_filters(settings, words, states, send_again, chosen)


@click.command()
@click.argument(
    "named", nargs=-1, metavar="[RESPONSE_ID]...", shell_complete=ids.undelivered_responses
)
@filters(*FILTERS)
@choosing(
    click.Choice([each.value for each in ON_THEIR_WAY]),
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
    only_people("keep answers from people")
    chosen = parse(given, DROP.noun)
    states = [each for each in ON_THEIR_WAY if not chosen.states or each in chosen.states]
    if chosen.named:
        _named(settings, DROP, give_up, ON_THEIR_WAY, chosen)
    else:
        _by_filters(settings, DROP, states, give_up, chosen)


def _by_filters(
    settings: Settings, words: Words, states: Sequence[ResponseState], verb: Verb, chosen: Chosen
) -> None:
    def pieces(tx: Transaction) -> Walk:
        wanted = up_to_now(tx.now, selection(tx.now, chosen.filters))
        return Walk(ways_to_responses(states, wanted), wanted)

    job = Job(
        words=words,
        pieces=pieces,
        do=lambda tx, found: each_response(tx, verb, found),
        rows=_table,
        limit=chosen.limit,
    )
    run(settings, job, sure=chosen.sure, dry_run=chosen.dry_run, as_json=chosen.as_json)


def _named(
    settings: Settings,
    words: Words,
    verb: Verb,
    allowed: Sequence[ResponseState],
    chosen: Chosen,
) -> None:
    with reading(settings) as tx:
        found = [look_up_response(tx, each) for each in chosen.named] if chosen.dry_run else []
        listed = rows(found, tx.now)
    if chosen.dry_run:
        could = sum(each.status in allowed for each in found)
        show_job(words, could, listed, chosen.as_json)
        return
    if words is DROP:
        confirm(f"{words.verb} {words.of(len(chosen.named))}", chosen.sure)

    def each(tx: Transaction, number: str) -> None:
        seen = look_up_response(tx, number)
        verb(tx, seen.id)
        if words is RETRY and seen.status == ResponseState.UNKNOWN:
            click.echo(f"{number}: {REPEATED}", err=True)

    run_named(settings, words, chosen.named, each, as_json=chosen.as_json)


def _table(tx: Transaction, found: Sequence[Found]) -> Sequence[Sequence[str]]:
    return rows([look_up_response(tx, str(each.id)) for each in found], tx.now)
