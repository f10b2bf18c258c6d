"""bullpen queue cancel, retry, drop and resume."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import click

from bullpen.cli import completion
from bullpen.cli.bulk import MAX_REFUSED_SHOWN, BulkJob, BulkText, print_plan, run_bulk, run_each
from bullpen.cli.command import read_transaction, require_person, write_transaction
from bullpen.cli.options import (
    BulkSelection,
    bulk_options,
    message_filters,
    message_selection,
    parse_selection,
    selection_until_now,
)
from bullpen.cli.output import as_json, confirm, dry_run, print_result
from bullpen.cli.queue import dead_rows, message_rows
from bullpen.cli.queue_lanes import all_option, resume_lanes
from bullpen.core.bulk import apply_to_messages
from bullpen.core.errors import NotFound, UnknownMessage
from bullpen.core.inspect.conversations import count_messages
from bullpen.core.inspect.messages import (
    get_message,
    list_messages_by_number,
    message_scans,
    newest_messages,
)
from bullpen.core.queue.manage import cancel as cancel_message
from bullpen.core.queue.manage import cancel_conversation, resume_conversation
from bullpen.core.queue.manage import drop as drop_message
from bullpen.core.queue.manage import resume as resume_message
from bullpen.core.queue.manage import retry as retry_message
from bullpen.core.roster.agents import find_agent
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState
from bullpen.core.store.scan import BatchCursor, RowRef, Selection
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
    settings: Settings,
    words: BulkText,
    allowed: Collection[MessageState],
    ids: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Show the named messages, and how many of them the verb applies to."""
    with read_transaction(settings) as tx:
        found = [get_message(tx, each) for each in ids]
        listed = message_rows(found, tx.now)
    could = sum(each.status in allowed for each in found)
    print_plan(words, could, listed, as_json)


def _table(tx: Transaction, found: Sequence[RowRef]) -> Sequence[Sequence[str]]:
    seen = list_messages_by_number(tx, [each.id for each in found])
    if all(each.status == MessageState.DEAD for each in seen):
        return dead_rows(seen, tx.now)
    return message_rows(seen, tx.now)


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
    "named", nargs=-1, metavar="[MESSAGE_ID]...", shell_complete=completion.dead_messages
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
        print_named(settings, words, FINISHED_STATES, chosen.named, as_json=chosen.as_json)
    else:
        if words is DROP_TEXT:
            confirm(f"{words.verb} {words.of(len(chosen.named))}", chosen.sure)
        run_each(settings, words, chosen.named, verb, as_json=chosen.as_json)


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
@click.argument(
    "named", nargs=-1, metavar="[MESSAGE_ID]...", shell_complete=completion.open_messages
)
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
        print_named(settings, CANCEL_TEXT, OPEN_STATES, chosen.named, as_json=chosen.as_json)
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


RESUME_TEXT = BulkText(
    noun="message",
    verb="Resume",
    done="are resumed",
    done_one="is resumed",
    none="Nothing of it is held. Next: bullpen queue held",
)


@click.command()
@click.argument(
    "ids", nargs=-1, metavar="[MESSAGE_ID|AGENT_ID]...", shell_complete=completion.resumable
)
@click.option(
    "--conversation",
    metavar="ID",
    shell_complete=completion.conversation_ids,
    help="All held messages of this conversation.",
)
@all_option
@dry_run
@as_json
@click.pass_obj
def resume(
    settings: Settings,
    ids: tuple[str, ...],
    conversation: str | None,
    everybody: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Resume held messages, or agents that are paused or draining.

    An id is looked up among the messages first, then among the agents. Messages and agents cannot
    be mixed in one command.

    \b
    Examples:
      bullpen queue resume internal_a1b2c3d4
      bullpen queue resume --conversation cli_a1b2c3d4
      bullpen queue resume coder
      bullpen queue resume --all
    """
    require_person("resume messages or agents")
    if [bool(ids), conversation is not None, everybody].count(True) != 1:
        raise click.UsageError(
            "Give messages' ids, agents' ids, --conversation or --all.\n"
            "What can be resumed: bullpen queue held, bullpen queue agents"
        )
    if conversation is not None:
        _resume_conversation(settings, conversation, dry_run=dry_run, as_json=as_json)
    elif everybody or not _are_messages(settings, ids):
        resume_lanes(settings, ids, everybody=everybody, dry_run=dry_run, as_json=as_json)
    elif dry_run:
        print_named(settings, RESUME_TEXT, (MessageState.HELD,), ids, as_json=as_json)
    else:
        run_each(settings, RESUME_TEXT, ids, resume_message, as_json=as_json)


def _are_messages(settings: Settings, ids: tuple[str, ...]) -> bool:
    """Whether these are ids of messages; False if they are ids of agents."""
    with read_transaction(settings) as tx:
        agents = [each for each in ids if not _is_message(tx, each)]
        for each in agents:
            if find_agent(tx, each) is None:
                raise NotFound(
                    f"there is no message and no agent {each[:60]!r}",
                    hint="`bullpen queue held` and `bullpen queue agents` show what there is.",
                )
    if agents and len(agents) < len(ids):
        raise click.UsageError(
            f"{', '.join(agents)}: give the ids of messages or of agents, not of both."
        )
    return not agents


def _is_message(tx: Transaction, message_id: str) -> bool:
    try:
        get_message(tx, message_id)
    except UnknownMessage:
        return False
    return True


def _resume_conversation(
    settings: Settings, conversation: str, *, dry_run: bool, as_json: bool
) -> None:
    if dry_run:
        with read_transaction(settings) as tx:
            held = Selection(conversation=conversation)
            count = count_messages(tx, conversation).by_state.get(MessageState.HELD.value, 0)
            rows = newest_messages(tx, held, MessageState.HELD, MAX_REFUSED_SHOWN)
            table = message_rows(rows, tx.now)
        print_plan(RESUME_TEXT, count, table, as_json)
        return
    with write_transaction(settings) as tx:
        done = resume_conversation(tx, conversation)
    text = f"{RESUME_TEXT.done_text(done)}, all of {conversation}" if done else RESUME_TEXT.none
    print_result(as_json, {"done": done, "conversation": conversation}, text)
