"""bullpen queue show: one message in full, with the reason of its state."""

from __future__ import annotations

from dataclasses import asdict
from shlex import quote
from typing import assert_never

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command
from bullpen.cli.output import (
    echo,
    format_count,
    format_duration,
    format_state,
    one_line,
    print_table,
)
from bullpen.cli.queue import count_attempts
from bullpen.core.clock import SECOND, format_time, owner_zone_name
from bullpen.core.inspect.lanes import LaneRecord
from bullpen.core.inspect.message_detail import MAX_RUNS, MessageDetail, get_message_detail
from bullpen.core.inspect.messages import MessageRecord
from bullpen.core.inspect.responses import ResponseRecord
from bullpen.core.models.base import decode_texts
from bullpen.core.queue.attempts import Attempt
from bullpen.core.states import LANE_STATES, NO_REASON, LaneState, MessageState
from bullpen.core.store.transaction import Transaction

RUNS_HEADING = ("STARTED", "TOOK", "OUTCOME", "PROVIDER", "COST", "ERROR")
ANSWERS_HEADING = ("RESPONSE", "TO", "STATE", "TEXT")
ERROR_CHARS = 300
TEXT_CHARS = 100
SENDER_CHARS = 200

CANCELLED_BY_HAND = "cancelled"
"""The reason that a cancellation has by default."""


@command(tx="read")
@click.argument("message_id", metavar="ID", shell_complete=completion.messages)
def show(tx: Transaction, message_id: str) -> Result:
    """Show a message with its state, runs and responses.

    Archived messages are found too.

    \b
    Example:
      bullpen queue show cli_a1b2c3d4
    """
    detail, now = get_message_detail(tx, message_id), tx.now
    reason, steps = explain_message(detail, now), next_steps(detail)
    zone = owner_zone_name(tx.settings)
    return Result(
        {**asdict(detail), "why": reason, "next": steps},
        show=lambda: _print_detail(detail, reason, zone, now),
        hints=[f"Next: {step}" for step in steps],
    )


def _print_detail(detail: MessageDetail, reason: str, zone: str, now: int) -> None:
    for name, value in _fields(detail.message, detail.archived, zone):
        if value:
            echo(f"{name:<13} {value}")
    echo(f"\n{detail.message.message}\n")
    echo(reason)
    if detail.runs:
        echo()
        print_table([RUNS_HEADING, *(_run_row(each, now) for each in detail.runs)], "")
        cost = sum(each.cost for each in detail.runs)
        if len(detail.runs) > 1 and cost:
            echo(f"{len(detail.runs)} runs, ${cost:.4f} in total")
    if detail.answers:
        echo()
        print_table([ANSWERS_HEADING, *map(_answer_row, detail.answers)], "")


def explain_message(detail: MessageDetail, now: int) -> str:
    """The state of the message with its reason, in a sentence."""
    message = detail.message
    since = format_duration(now - message.updated_at)
    reason = message.last_error or NO_REASON
    match MessageState(message.status):
        case MessageState.PENDING:
            return _explain_pending(detail, now)
        case MessageState.PROCESSING:
            return _explain_processing(detail, now)
        case MessageState.HELD:
            return f"Held for {since}: {reason}"
        case MessageState.DEAD:
            kind = message.error_kind or "unknown"
            failed = _format_failed(count_attempts(message))
            return f"Dead for {since}, {failed} ({kind}): {reason}"
        case MessageState.CANCELLED:
            return f"Cancelled {since} ago{'' if reason == CANCELLED_BY_HAND else f': {reason}'}"
        case MessageState.EXPIRED:
            return f"Expired {since} ago: no run started before the deadline."
        case MessageState.COMPLETED:
            return f"Completed {since} ago{_format_batch(detail)}."
        case never:
            assert_never(never)


def next_steps(detail: MessageDetail) -> list[str]:
    """The commands that a person may run next."""
    message = detail.message
    id_ = quote(message.message_id)
    steps = []
    match MessageState(message.status):
        case MessageState.DEAD | MessageState.CANCELLED | MessageState.EXPIRED:
            if not detail.archived:
                steps += [f"bullpen queue retry {id_}", f"bullpen queue drop {id_}"]
        case MessageState.HELD:
            steps += [f"bullpen queue resume {id_}", f"bullpen queue cancel {id_}"]
        case MessageState.PENDING | MessageState.PROCESSING:
            steps.append(f"bullpen queue cancel {id_}")
            if _is_paused(detail.lane):
                steps.insert(0, f"bullpen agent resume {message.agent}")
            if not detail.attended:
                steps.insert(0, "bullpen up")
        case MessageState.COMPLETED:
            pass
        case never:
            assert_never(never)
    return steps


def _explain_pending(detail: MessageDetail, now: int) -> str:
    message, lane = detail.message, detail.lane
    agent = f"@{message.agent}"
    if lane is not None and not LANE_STATES[LaneState(lane.state)].claimable:
        return f"Pending: {agent} is {lane.state} ({lane.reason or NO_REASON})."
    if not detail.ready and message.available_at > now:
        wait = format_duration(message.available_at - now)
        if failed := count_attempts(message):
            return f"Pending: retried in {wait}, {_format_failed(failed)}: {message.last_error}"
        return f"Pending: delayed for another {wait}."
    if lane is not None and lane.not_before is not None and lane.not_before > now:
        wait = format_duration(lane.not_before - now)
        return f"Pending: rate limit of the provider of {agent}, for another {wait}."
    before = _format_before(detail.before_it)
    if lane is not None and lane.processing:
        return (
            f"Pending, {before}: {agent} is processing another message {_format_since(lane, now)}."
        )
    if not detail.attended:
        return f"Pending, {before}: no processor is running."
    if lane is not None and lane.outside:
        return f"Pending, {before}: waiting for an HTTP worker."
    return f"Pending, {before}."


def _explain_processing(detail: MessageDetail, now: int) -> str:
    lane = detail.lane
    if lane is None or lane.lease_expires_at is None:
        return "Processing."
    if lane.lease_expires_at < now:
        expired = format_duration(now - lane.lease_expires_at)
        then = "It will be retried." if detail.attended else "No processor is running."
        return f"Processing by {lane.claimed_by}, whose lease expired {expired} ago. {then}"
    return f"Processing {_format_since(lane, now)} by {lane.claimed_by}."


def _format_since(lane: LaneRecord, now: int) -> str:
    return f"for {format_duration(now - lane.claimed_at)}"


def _format_before(count: int) -> str:
    if count == 0:
        return "next in line"
    return f"{count} or more before it" if count == MAX_RUNS else f"{count} before it"


def _format_failed(count: int) -> str:
    return f"after {format_count(count, 'failed run')}" if count else "without a run"


def _format_batch(detail: MessageDetail) -> str:
    return "" if detail.ran_with is None else f" by the run of {detail.ran_with}"


def _is_paused(lane: LaneRecord | None) -> bool:
    return lane is not None and lane.state == LaneState.PAUSED


def _fields(message: MessageRecord, archived: bool, zone: str) -> list[tuple[str, str]]:
    who = message.sender if message.from_agent is None else f"@{message.from_agent}"
    person = f" ({message.sender_id})" if message.sender_id and not message.from_agent else ""
    tried = count_attempts(message)
    begun = message.conversation_id == message.message_id
    return [
        ("message", message.message_id),
        ("state", f"{message.status}, archived" if archived else message.status),
        ("agent", f"@{message.agent}"),
        ("from", one_line(f"{who}{person} on {message.channel}", SENDER_CHARS)),
        ("conversation", "" if begun else message.conversation_id),
        ("answers", message.parent_id or ""),
        ("team", message.team_id or ""),
        ("created", format_time(message.created_at, zone)),
        ("changed", format_time(message.updated_at, zone)),
        ("due", format_time(message.available_at, zone) if _is_delayed(message) else ""),
        ("deadline", format_time(message.deadline, zone) if message.deadline else ""),
        ("failed runs", str(tried) if tried else ""),
        ("files", ", ".join(decode_texts(message.files))),
    ]


def _is_delayed(message: MessageRecord) -> bool:
    return message.available_at > message.created_at + SECOND


def _run_row(run: Attempt, now: int) -> tuple[str, ...]:
    kind = f" ({run.error_kind})" if run.error_kind else ""
    with_ = " ".join(each for each in (run.provider, run.model) if each)
    return (
        f"{format_duration(now - run.claimed_at)} ago",
        _format_took(run.finished_at - run.claimed_at),
        f"{run.outcome}{kind}",
        with_,
        f"${run.cost:.4f}" if run.cost else "",
        one_line(run.error or "", ERROR_CHARS),
    )


def _format_took(milliseconds: int) -> str:
    return f"{milliseconds} ms" if milliseconds < 2 * SECOND else format_duration(milliseconds)


def _answer_row(answer: ResponseRecord) -> tuple[str, ...]:
    to = one_line(f"{answer.channel}:{answer.sender_id or answer.sender}", TEXT_CHARS)
    return str(answer.id), to, format_state(answer.status), one_line(answer.message, TEXT_CHARS)
