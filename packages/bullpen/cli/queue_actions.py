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
from bullpen.cli.errors import UsageError
from bullpen.cli.filters import check_filters, message_filters
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
from bullpen.core.roster.agents import find_agent, list_agents
from bullpen.core.settings import Settings
from bullpen.core.states import UNANSWERED_STATES, MessageState
from bullpen.core.store.scan import RowRef, Selection
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import describe_unknown

# Pending before processing: no pending message starts in place of a cancelled one.
OPEN_STATES = (MessageState.HELD, MessageState.PENDING, MessageState.PROCESSING)
FILTERS = ("agent", "error", "kind", "conversation", "channel", "sender", "since", "before")
STATE_HELP = "Select messages in this state. Repeatable."

RETRY_TEXT = BulkText(
    noun="message",
    verb="Retry",
    done="Retried",
    none="No messages match. Next: bullpen queue dead",
)
DROP_TEXT = BulkText(
    noun="message",
    verb="Delete",
    done="Deleted",
    none="No messages match. Next: bullpen queue dead",
)
CANCEL_TEXT = BulkText(
    noun="message",
    verb="Cancel",
    done="Cancelled",
    none="No pending, processing or held messages match. Next: bullpen queue status",
)
RESUME_TEXT = BulkText(
    noun="message",
    verb="Resume",
    done="Resumed",
    none="No held messages match. Next: bullpen queue held",
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
    "named", nargs=-1, metavar="[ID]...", shell_complete=completion.dead_messages
)


@command(people_only="retry messages")
@message_ids_argument
@message_filters(*FILTERS)
@bulk_options(UNANSWERED_STATES, STATE_HELP, default="dead")
def retry(settings: Settings, /, **options: Any) -> Result:  # noqa: ANN401 - ids and filters
    """Retry dead, cancelled or expired messages.

    A message returns to its old place in the queue, without its failures and its deadline. Give
    ids, or select messages by filters. Filters select dead messages unless --state is given, and
    --since and --before refer to the time of the last failure.

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
@bulk_options(UNANSWERED_STATES, STATE_HELP, default="dead")
def drop(settings: Settings, /, **options: Any) -> Result:  # noqa: ANN401 - ids and filters
    """Delete dead, cancelled or expired messages.

    Give ids, or select messages by filters. Filters select dead messages unless --state is given,
    and --since and --before refer to the time of the last failure. Runs, events and history of a
    deleted message are kept.

    \b
    Examples:
      bullpen queue drop cli_a1b2c3d4
      bullpen queue drop --agent coder --before 7d --dry-run
    """
    return run_bulk(settings, DROP, parse_selection(options, DROP_TEXT.noun))


@command(people_only="cancel messages")
@click.argument("named", nargs=-1, metavar="[ID]...", shell_complete=completion.open_messages)
@message_filters("agent", "conversation", "channel", "sender", "since", "before")
@click.option(
    "--reason",
    metavar="TEXT",
    default="cancelled",
    show_default=True,
    help="Reason that is shown.",
)
@bulk_options(OPEN_STATES, STATE_HELP, default="all three")
def cancel(
    settings: Settings,
    /,
    reason: str,
    **options: Any,  # noqa: ANN401 - ids and filters
) -> Result:
    """Cancel pending, processing or held messages.

    The run of a processing message is stopped. Give ids, or select messages by filters. Cancelled
    messages can be retried.

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
    """Cancel all of it in one transaction, so that none of its agents can hand off meanwhile."""
    with read_transaction(settings) as tx:
        check_filters(tx, conversation=conversation)
        by_state = count_messages(tx, conversation).by_state
    matched = sum(by_state.get(state.value, 0) for state in OPEN_STATES)
    if matched:
        question = f"{CANCEL_TEXT.verb} {CANCEL_TEXT.of(matched)} of {conversation}"
        confirm(question, sure, many=True)
    with write_transaction(settings) as tx:
        done = cancel_conversation(tx, conversation, reason)
    return Result(
        {"dry_run": False, "matched": matched, "done": done, "conversation": conversation},
        f"{CANCEL_TEXT.done_text(done)} of {conversation}." if done else CANCEL_TEXT.none,
    )


@command(people_only="resume messages or agents")
@click.argument("ids", nargs=-1, metavar="[ID|AGENT]...", shell_complete=completion.resumable)
@click.option(
    "--conversation",
    metavar="ID",
    shell_complete=completion.conversation_ids,
    help="Resume all held messages of this conversation.",
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
    """Resume held messages, or paused or draining agents.

    An id is looked up among messages first, then among agents. One command takes either messages
    or agents. For agents, `bullpen agent resume` is the same.

    \b
    Examples:
      bullpen queue resume internal_a1b2c3d4
      bullpen queue resume --conversation cli_a1b2c3d4
      bullpen queue resume coder
    """
    if [bool(ids), conversation is not None, everybody].count(True) != 1:
        raise UsageError(
            "give ids of messages, ids of agents, --conversation or --all",
            "List held messages: bullpen queue held. List agents: bullpen queue agents",
        )
    if conversation is not None:
        return _resume_conversation(settings, conversation, dry_run=dry_run)
    if everybody or not _are_messages(settings, ids):
        return resume_lanes(settings, ids, everybody=everybody, dry_run=dry_run)
    named = tuple(dict.fromkeys(ids))
    return (plan_by_ids if dry_run else run_by_ids)(settings, RESUME, named)


def _are_messages(settings: Settings, ids: tuple[str, ...]) -> bool:
    """Whether these are ids of messages, not of agents."""
    with read_transaction(settings) as tx:
        agents = [each for each in ids if not _is_message(tx, each)]
        for each in agents:
            if find_agent(tx, each) is None:
                known = [agent.id for agent in list_agents(tx)]
                raise NotFound(
                    describe_unknown("message or agent", each, known),
                    hint="List held messages: bullpen queue held. "
                    "List agents: bullpen queue agents",
                )
    if agents and len(agents) < len(ids):
        raise UsageError(
            "give ids of messages or of agents, not both",
            f"These are agents: {', '.join(agents)}.",
        )
    return not agents


def _is_message(tx: Transaction, message_id: str) -> bool:
    try:
        get_message(tx, message_id)
    except UnknownMessage:
        return False
    return True


def _resume_conversation(settings: Settings, conversation: str, *, dry_run: bool) -> Result:
    with read_transaction(settings) as tx:
        check_filters(tx, conversation=conversation)
        if dry_run:
            count = count_messages(tx, conversation).by_state.get(MessageState.HELD.value, 0)
            selection = Selection(conversation=conversation)
            held = newest_messages(tx, selection, MessageState.HELD, MAX_ROWS_SHOWN)
            return plan_result(RESUME_TEXT, count, message_rows(held, tx.now))
    with write_transaction(settings) as tx:
        done = resume_conversation(tx, conversation)
    return Result(
        {"done": done, "conversation": conversation},
        f"{RESUME_TEXT.done_text(done)} of {conversation}." if done else RESUME_TEXT.none,
    )
