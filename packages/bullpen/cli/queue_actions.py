"""bullpen queue cancel, retry, drop and resume."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

from bullpen.cli import completion
from bullpen.cli.bulk import (
    MAX_ROWS_SHOWN,
    BulkNoun,
    BulkSelection,
    BulkText,
    BulkVerb,
    bulk_options,
    parse_selection,
    plan_by_ids,
    plan_result,
    run_bulk,
    run_by_ids,
)
from bullpen.cli.command import Result, command, read_transaction, write_transaction
from bullpen.cli.filters import message_filters
from bullpen.cli.options import dry_run
from bullpen.cli.output import confirm
from bullpen.cli.queue import dead_rows, message_rows
from bullpen.cli.queue_lanes import all_option, resume_lanes
from bullpen.core.bulk import apply_to_messages
from bullpen.core.errors import NotFound, UnknownMessage
from bullpen.core.inspect.conversations import count_messages
from bullpen.core.inspect.messages import (
    MessageRecord,
    get_message,
    list_messages_by_number,
    message_scans,
    newest_messages,
)
from bullpen.core.queue.conversations import cancel_conversation, resume_conversation
from bullpen.core.queue.manage import cancel as cancel_message
from bullpen.core.queue.manage import drop as drop_message
from bullpen.core.queue.manage import resume as resume_message
from bullpen.core.queue.manage import retry as retry_message
from bullpen.core.roster.agents import find_agent
from bullpen.core.settings import Settings
from bullpen.core.states import UNANSWERED_STATES, MessageState
from bullpen.core.store.scan import RowRef, Selection
from bullpen.core.store.transaction import Transaction

# What waits before what runs: nothing begins in the place of what was ended.
OPEN_STATES = (MessageState.HELD, MessageState.PENDING, MessageState.PROCESSING)
FILTERS = ("agent", "error", "kind", "conversation", "channel", "sender", "since", "before")
STATE_HELP = "Filters choose of those in this state; of the dead, if not said."

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
CANCEL_TEXT = BulkText(
    noun="message",
    verb="Cancel",
    done="are cancelled",
    done_one="is cancelled",
    none="There is no message like that which waits, runs or is held. Next: bullpen queue status",
)
RESUME_TEXT = BulkText(
    noun="message",
    verb="Resume",
    done="are resumed",
    done_one="is resumed",
    none="Nothing of it is held. Next: bullpen queue held",
)

MessageVerb = BulkVerb[MessageState, MessageRecord]


def _batch_rows(tx: Transaction, batch: Sequence[RowRef]) -> list[tuple[str, ...]]:
    records = list_messages_by_number(tx, [each.id for each in batch])
    if all(each.status == MessageState.DEAD for each in records):
        return dead_rows(records, tx.now)
    return message_rows(records, tx.now)


MESSAGES: BulkNoun[MessageState, MessageRecord] = BulkNoun(
    scans=message_scans, get=get_message, rows=message_rows, batch_rows=_batch_rows
)


def _finished_verb(
    text: BulkText, verb: Callable[[Transaction, str], None], *, confirms_ids: bool = False
) -> MessageVerb:
    return BulkVerb(
        text=text,
        noun=MESSAGES,
        states=UNANSWERED_STATES,
        default_states=(MessageState.DEAD,),
        apply=verb,
        apply_batch=lambda tx, batch: apply_to_messages(tx, verb, batch),
        confirms_ids=confirms_ids,
    )


RETRY = _finished_verb(RETRY_TEXT, retry_message)
DROP = _finished_verb(DROP_TEXT, drop_message, confirms_ids=True)
RESUME: BulkVerb[MessageState, MessageRecord] = BulkVerb(
    text=RESUME_TEXT,
    noun=MESSAGES,
    states=(MessageState.HELD,),
    default_states=(MessageState.HELD,),
    apply=resume_message,
    apply_batch=lambda tx, batch: apply_to_messages(tx, resume_message, batch),
)

message_ids_argument = click.argument(
    "named", nargs=-1, metavar="[MESSAGE_ID]...", shell_complete=completion.dead_messages
)


@command(people_only="try messages again")
@message_ids_argument
@message_filters(*FILTERS)
@bulk_options(UNANSWERED_STATES, STATE_HELP)
def retry(settings: Settings, /, **options: Any) -> Result:  # noqa: ANN401 - ids and filters
    """Try messages again that are dead, cancelled or expired.

    Each takes its old place, its failures forgotten and its deadline lifted. Name them, or choose
    them by filters: then the dead are meant, and the times are those of their deaths.

    \b
    Examples:
      bullpen queue retry cli_a1b2c3d4
      bullpen queue retry --agent coder --error timeout --since 2h --dry-run
      bullpen queue retry --all --yes
    """
    return run_bulk(settings, RETRY, parse_selection(options, RETRY_TEXT.noun))


@command(people_only="delete messages")
@message_ids_argument
@message_filters(*FILTERS)
@bulk_options(UNANSWERED_STATES, STATE_HELP)
def drop(settings: Settings, /, **options: Any) -> Result:  # noqa: ANN401 - ids and filters
    """Delete messages for good that are dead, cancelled or expired.

    Name them, or choose them by filters: then the dead are meant, and the times are those of their
    deaths. What the record has of them stays: runs, events, history.

    \b
    Examples:
      bullpen queue drop cli_a1b2c3d4
      bullpen queue drop --agent coder --before 7d --dry-run
    """
    return run_bulk(settings, DROP, parse_selection(options, DROP_TEXT.noun))


@command(people_only="cancel messages")
@click.argument(
    "named", nargs=-1, metavar="[MESSAGE_ID]...", shell_complete=completion.open_messages
)
@message_filters("agent", "conversation", "channel", "sender", "since", "before")
@click.option("--reason", default="cancelled", show_default=True, help="Why, for people.")
@bulk_options(OPEN_STATES, "Filters choose of those in this state; of all three, if not said.")
def cancel(
    settings: Settings,
    /,
    reason: str,
    **options: Any,  # noqa: ANN401 - ids and filters
) -> Result:
    """End messages that wait, run or are held; a run of one is ended with it.

    Name them, or choose them by filters, of which a whole conversation is one. They can be tried
    again.

    \b
    Examples:
      bullpen queue cancel cli_a1b2c3d4
      bullpen queue cancel --conversation cli_a1b2c3d4
      bullpen queue cancel --agent coder --before 1d --dry-run
    """
    selection = parse_selection(options, CANCEL_TEXT.noun)
    conversation = _whole_conversation(selection)
    if conversation is not None and not selection.dry_run:
        return _cancel_conversation(settings, conversation, reason, sure=selection.sure)
    verb = partial(cancel_message, reason=reason)
    cancel_verb: MessageVerb = BulkVerb(
        text=CANCEL_TEXT,
        noun=MESSAGES,
        states=OPEN_STATES,
        default_states=OPEN_STATES,
        apply=verb,
        apply_batch=lambda tx, batch: apply_to_messages(tx, verb, batch),
    )
    return run_bulk(settings, cancel_verb, selection)


def _whole_conversation(selection: BulkSelection) -> str | None:
    """The conversation, if it is the only filter."""
    filters = [name for name, value in selection.filters.items() if value is not None]
    if filters != ["conversation"] or selection.states or selection.limit:
        return None
    return str(selection.filters["conversation"])


def _cancel_conversation(
    settings: Settings, conversation: str, reason: str, *, sure: bool
) -> Result:
    """Cancel all of it in one transaction: nothing of it can hand on meanwhile."""
    with read_transaction(settings) as tx:
        by_state = count_messages(tx, conversation).by_state
    matched = sum(by_state.get(state.value, 0) for state in OPEN_STATES)
    if matched:
        question = f"{CANCEL_TEXT.verb} {CANCEL_TEXT.of(matched)} of {conversation}"
        confirm(question, sure, many=True)
    with write_transaction(settings) as tx:
        done = cancel_conversation(tx, conversation, reason)
    return Result(
        {"dry_run": False, "matched": matched, "done": done, "conversation": conversation},
        f"{CANCEL_TEXT.done_text(done)}, all of {conversation}" if done else CANCEL_TEXT.none,
    )


@command(people_only="resume messages or agents")
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
def resume(
    settings: Settings,
    ids: tuple[str, ...],
    conversation: str | None,
    everybody: bool,
    dry_run: bool,
) -> Result:
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
    if [bool(ids), conversation is not None, everybody].count(True) != 1:
        raise click.UsageError(
            "Give messages' ids, agents' ids, --conversation or --all.\n"
            "What can be resumed: bullpen queue held, bullpen queue agents"
        )
    if conversation is not None:
        return _resume_conversation(settings, conversation, dry_run=dry_run)
    if everybody or not _are_messages(settings, ids):
        return resume_lanes(settings, ids, everybody=everybody, dry_run=dry_run)
    named = tuple(dict.fromkeys(ids))
    return (plan_by_ids if dry_run else run_by_ids)(settings, RESUME, named)


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


def _resume_conversation(settings: Settings, conversation: str, *, dry_run: bool) -> Result:
    if dry_run:
        with read_transaction(settings) as tx:
            count = count_messages(tx, conversation).by_state.get(MessageState.HELD.value, 0)
            selection = Selection(conversation=conversation)
            held = newest_messages(tx, selection, MessageState.HELD, MAX_ROWS_SHOWN)
            return plan_result(RESUME_TEXT, count, message_rows(held, tx.now))
    with write_transaction(settings) as tx:
        done = resume_conversation(tx, conversation)
    return Result(
        {"done": done, "conversation": conversation},
        f"{RESUME_TEXT.done_text(done)}, all of {conversation}" if done else RESUME_TEXT.none,
    )
