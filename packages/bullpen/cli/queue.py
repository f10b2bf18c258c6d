"""bullpen queue: counts and lists of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import click

from bullpen.cli.command import Result, command
from bullpen.cli.filters import StateType, message_filters, parse_filters
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import limit_option
from bullpen.cli.output import (
    format_duration,
    format_state,
    join,
    one_line,
    state_style,
    style,
)
from bullpen.cli.queue_lanes import activity_cells
from bullpen.core.inspect.messages import MessageRecord, message_scans, newest_messages
from bullpen.core.inspect.queue import LaneActivity, QueueOverview, queue_overview
from bullpen.core.maintenance.dead_letters import list_causes
from bullpen.core.states import (
    LANE_STATES,
    NEEDS_PERSON_STATES,
    LaneState,
    MessageState,
    ResponseState,
)
from bullpen.core.store.scan import BatchCursor
from bullpen.core.store.transaction import Transaction


@click.group(
    cls=LazyGroup,
    modules={
        "agents": "bullpen.cli.queue_lanes:agents",
        "cancel": "bullpen.cli.queue_actions:cancel",
        "drain": "bullpen.cli.queue_lanes:drain",
        "drop": "bullpen.cli.queue_actions:drop",
        "pause": "bullpen.cli.queue_lanes:pause",
        "resume": "bullpen.cli.queue_actions:resume",
        "retry": "bullpen.cli.queue_actions:retry",
        "show": "bullpen.cli.queue_show:show",
    },
    aliases={"let-go": "resume"},
)
def queue() -> None:
    """List messages, and retry, cancel or resume them.

    \b
    Examples:
      bullpen queue status
      bullpen queue dead
      bullpen queue retry --agent coder --error timeout --since 2h
    """


CAUSES_HEADING = ("KIND", "COUNT", "FIRST", "LAST", "ERROR")
MESSAGES_HEADING = ("MESSAGE", "AGENT", "STATE", "AGE", "TEXT")
DEAD_HEADING = ("MESSAGE", "AGENT", "KIND", "RUNS", "AGE", "ERROR")
HELD_HEADING = ("MESSAGE", "AGENT", "AGE", "REASON")
STATUS_HEADING = ("AGENT", "PENDING", "OLDEST", "RUNNING", "REASON")
TEXT_CHARS = 60
REASON_CHARS = 160

NO_CAUSES = "No failed messages yet."
NO_MESSAGES = 'No messages match. Next: bullpen send "hello", or fewer filters.'
MAY_BE_MORE = "There may be more. Use --limit to show more."
DEAD_NEXT_STEPS = "Next: bullpen queue show ID, bullpen queue retry ID, bullpen queue drop ID"
HELD_NEXT_STEPS = "Next: bullpen queue show ID, bullpen queue resume ID, bullpen queue cancel ID"

MessageRows = Callable[[Sequence[MessageRecord], int], list[tuple[str, ...]]]


@command(queue, tx="read")
def status(tx: Transaction) -> Result:
    """Show message counts, and the agents that have messages.

    Idle agents are left out. All agents: bullpen queue agents

    \b
    Example:
      bullpen queue status --json
    """
    overview = queue_overview(tx)
    lanes = [lane for lane in overview.lanes if _has_work(lane)]
    counts = _format_counts(overview, tx.now)
    return Result(
        overview,
        [*counts, ""] if lanes else counts,
        rows=[STATUS_HEADING, *(_lane_row(lane, tx.now) for lane in lanes)] if lanes else None,
        hints=_status_hints(overview, lanes),
    )


@command(queue, tx="read", listing=True)
@message_filters("agent")
@click.option("--state", type=StateType(MessageState), help="Only in this state.")
@message_filters("conversation", "channel", "sender", "since", "before")
@click.option("--archived", is_flag=True, help="Include archived messages.")
@limit_option()
def list_(
    tx: Transaction,
    /,
    state: str | None,
    archived: bool,
    limit: int,
    **filters: Any,  # noqa: ANN401 - the filters
) -> Result:
    """List messages, newest first.

    \b
    Examples:
      bullpen queue list --state pending --agent coder
      bullpen queue cancel $(bullpen queue list --agent coder -q)
      bullpen queue list --since 2h --sender ann --json
    """
    wanted = None if state is None else MessageState(state)
    selection = parse_filters(tx, filters)
    messages = newest_messages(tx, selection, wanted, limit, archived=archived)
    return Result(
        [message_fields(each) for each in messages],
        rows=message_rows(messages, tx.now),
        empty=NO_MESSAGES,
        hints=[MAY_BE_MORE] if len(messages) == limit else [],
        ids=(each.message_id for each in messages),
    )


@command(queue, tx="read", listing=True)
@message_filters("agent", "kind", "error", "conversation", "since", "before")
@limit_option()
def dead(tx: Transaction, /, limit: int, **filters: Any) -> Result:  # noqa: ANN401 - the filters
    """List dead messages and their errors, newest first.

    A dead message is retried only by hand. Counts by cause: bullpen queue causes

    \b
    Examples:
      bullpen queue dead
      bullpen queue dead --agent coder --error timeout --since 2h
    """
    return _list_in_state(
        tx, MessageState.DEAD, filters, limit, dead_rows, "No dead messages.", DEAD_NEXT_STEPS
    )


@command(queue, tx="read", listing=True)
@message_filters("agent", "conversation", "since", "before")
@limit_option()
def held(tx: Transaction, /, limit: int, **filters: Any) -> Result:  # noqa: ANN401 - the filters
    """List messages that are held for a person.

    \b
    Example:
      bullpen queue held
    """
    empty = "No held messages."
    return _list_in_state(tx, MessageState.HELD, filters, limit, held_rows, empty, HELD_NEXT_STEPS)


@command(queue, tx="read", listing=True)
@limit_option()
def causes(tx: Transaction, limit: int) -> Result:
    """List causes of dead messages with counts, latest first.

    Errors that differ only in numbers and ids are one cause. A message stays counted after a retry
    or a drop.

    \b
    Examples:
      bullpen queue causes
      bullpen queue retry --error "connection refused" --dry-run
    """
    groups = list_causes(tx, limit)
    rows = [
        (
            *(each.kind, str(each.deaths), f"{format_duration(tx.now - each.first_at)} ago"),
            *(f"{format_duration(tx.now - each.last_at)} ago", one_line(each.error, REASON_CHARS)),
        )
        for each in groups
    ]
    return Result(
        groups,
        rows=[CAUSES_HEADING, *rows],
        empty=NO_CAUSES,
        hints=['Next: bullpen queue retry --error "PART OF THE ERROR" --dry-run'] if groups else [],
        ids=(each.fingerprint for each in groups),
    )


def message_rows(messages: Sequence[MessageRecord], now: int) -> list[tuple[str, ...]]:
    """A table of messages in any state."""
    return [MESSAGES_HEADING, *(_message_row(each, now) for each in messages)]


def dead_rows(messages: Sequence[MessageRecord], now: int) -> list[tuple[str, ...]]:
    """A table of dead messages."""
    return [DEAD_HEADING, *(_dead_row(each, now) for each in messages)]


def held_rows(messages: Sequence[MessageRecord], now: int) -> list[tuple[str, ...]]:
    """A table of held messages."""
    return [HELD_HEADING, *(_held_row(each, now) for each in messages)]


def message_fields(message: MessageRecord) -> dict[str, object]:
    """The message for a JSON document; for a dead or held one with reason and time."""
    fields = asdict(message)
    if message.status in NEEDS_PERSON_STATES:
        fields |= {"why": message.last_error or "", "since": message.updated_at}
    return fields


def count_attempts(message: MessageRecord) -> int:
    """The number of its failed runs."""
    return message.retry_count + message.crash_count


def _list_in_state(
    tx: Transaction,
    state: MessageState,
    filters: dict[str, Any],
    limit: int,
    rows: MessageRows,
    empty: str,
    next_steps: str,
) -> Result:
    selection = parse_filters(tx, filters)
    messages = newest_messages(tx, selection, state, limit)
    count = len(messages)
    if count == limit:
        count = BatchCursor(message_scans(tx, (state,), selection), selection).count(tx)
    if any(value is not None for value in filters.values()):
        empty = f"{empty[:-1]} match."
    hints = []
    if count > len(messages):
        hints.append(f"Showing {len(messages)} of {count}. Use --limit to show more.")
    if messages:
        hints.append(next_steps)
    document = [message_fields(each) for each in messages]
    return Result(
        document,
        rows=rows(messages, tx.now),
        empty=empty,
        hints=hints,
        ids=(each.message_id for each in messages),
    )


def _message_row(message: MessageRecord, now: int) -> tuple[str, ...]:
    age = format_duration(now - message.created_at)
    text = one_line(message.message, TEXT_CHARS)
    return message.message_id, message.agent, format_state(message.status), age, text


def _dead_row(message: MessageRecord, now: int) -> tuple[str, ...]:
    return (
        *(message.message_id, message.agent, message.error_kind or ""),
        *(str(count_attempts(message)), format_duration(now - message.updated_at)),
        one_line(message.last_error or "", REASON_CHARS),
    )


def _held_row(message: MessageRecord, now: int) -> tuple[str, ...]:
    age = format_duration(now - message.updated_at)
    reason = one_line(message.last_error or "", REASON_CHARS)
    return message.message_id, message.agent, age, reason


def _format_counts(overview: QueueOverview, now: int) -> Iterator[str]:
    since = overview.oldest_waiting_since
    oldest = "" if since is None else f" (oldest {format_duration(now - since)})"
    yield join(
        *("Messages:  ", f"{overview.pending} pending{oldest}"),
        *(", ", _format_count(overview.processing, MessageState.PROCESSING)),
        *(", ", _format_count(overview.held, MessageState.HELD)),
        *(", ", _format_count(overview.dead, MessageState.DEAD)),
    )
    yield join(
        *("Responses: ", f"{overview.outgoing} pending"),
        *(", ", _format_count(overview.undelivered, ResponseState.DEAD)),
        *(", ", _format_count(overview.unknown, ResponseState.UNKNOWN)),
    )


def _format_count(count: int, state: MessageState | ResponseState) -> str:
    """A count with its state, which has its colour if there is one of it."""
    return style(f"{count} {state}", fg=state_style(state)) if count else f"{count} {state}"


def _has_work(lane: LaneActivity) -> bool:
    removed = lane.state == LaneState.ARCHIVED and not lane.pending and not lane.processing
    return not lane.quiet and not removed


def _lane_row(lane: LaneActivity, now: int) -> tuple[str, ...]:
    return lane.agent, str(lane.pending), *activity_cells(lane, now)


def _status_hints(overview: QueueOverview, lanes: list[LaneActivity]) -> Iterator[str]:
    """The next steps for a person."""
    if not overview.processors and any(lane.pending and not lane.outside for lane in lanes):
        yield "No processor is running. Next: bullpen up"
    if overview.hold is not None:
        yield f"Responses are on hold: {overview.hold.reason}"
    if overview.dead:
        yield "Dead messages: bullpen queue dead"
    if overview.held:
        yield "Held messages: bullpen queue held"
    if overview.undelivered or overview.unknown:
        yield (
            "Responses that were not or may not have been delivered: "
            "bullpen response list --state dead --state unknown"
        )
    closed = [lane.agent for lane in lanes if LANE_STATES[LaneState(lane.state)].needs_person]
    if closed:
        yield f"Paused or draining agents: bullpen agent resume {' '.join(closed)}"
