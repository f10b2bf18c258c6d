"""Why a message stands as it stands, and what a person can do about it."""

from __future__ import annotations

from typing import assert_never

from bullpen.cli.queue.lines import count_attempts
from bullpen.cli.span import format_duration
from bullpen.core.queue.lane_list import LaneRecord
from bullpen.core.queue.life import MAX_RUNS, MessageDetail
from bullpen.core.states import LaneState, MessageState

BY_HAND = "cancelled"
"""The reason that is given for one who gives none."""


def explain_message(found: MessageDetail, now: int) -> str:
    """In words, why."""
    message = found.message
    since = format_duration(now - message.updated_at)
    why = message.last_error or "nobody said why"
    match MessageState(message.status):
        case MessageState.PENDING:
            return _explain_pending(found, now)
        case MessageState.PROCESSING:
            return _explain_processing(found, now)
        case MessageState.HELD:
            return f"It waits for a person, for {since}: {why}"
        case MessageState.DEAD:
            kind = message.error_kind or "unknown"
            return f"It is dead for {since}, {_after(count_attempts(message))} ({kind}): {why}"
        case MessageState.CANCELLED:
            said = "" if why == BY_HAND else f": {why}"
            return f"It was cancelled {since} ago{said}"
        case MessageState.EXPIRED:
            return f"Nobody had begun it by its deadline, {since} ago."
        case MessageState.COMPLETED:
            return f"It was done {since} ago{_together(found)}."
        case never:
            assert_never(never)


def next_steps(found: MessageDetail) -> list[str]:
    """Commands for a person, with what they do."""
    message = found.message
    id_ = message.message_id
    steps = []
    match MessageState(message.status):
        case MessageState.DEAD | MessageState.CANCELLED | MessageState.EXPIRED:
            if not found.archived:
                steps += [f"bullpen queue retry {id_}", f"bullpen queue drop {id_}"]
        case MessageState.HELD:
            steps += [f"bullpen queue let-go {id_}", f"bullpen queue cancel {id_}"]
        case MessageState.PENDING | MessageState.PROCESSING:
            steps.append(f"bullpen queue cancel {id_}")
            if _closed(found.lane):
                steps.insert(0, f"bullpen queue resume {message.agent}")
            if not found.attended:
                steps.insert(0, "bullpen up")
        case MessageState.COMPLETED:
            pass
        case never:
            assert_never(never)
    return steps


def _explain_pending(found: MessageDetail, now: int) -> str:
    message, lane = found.message, found.lane
    agent = f"@{message.agent}"
    if lane is not None and lane.state in (LaneState.PAUSED, LaneState.ARCHIVED):
        return f"It waits, for {agent} is {lane.state}: {lane.reason or 'nobody said why'}"
    if not found.ready and message.available_at > now:
        until = f"It waits {format_duration(message.available_at - now)} more"
        if count_attempts(message):
            return f"{until}, {_after(count_attempts(message))}: {message.last_error}"
        return f"{until}: it was sent with a delay."
    if lane is not None and lane.not_before is not None and lane.not_before > now:
        return f"It waits: the provider asked {agent} to wait {format_duration(lane.not_before - now)}."
    before = _before(found.before_it)
    if lane is not None and lane.processing:
        return f"It waits, {before}: {agent} has been at something else {_since(lane, now)}."
    if not found.attended:
        return f"It waits, {before}: no processor runs."
    if lane is not None and lane.outside:
        return f"It waits, {before}, for a worker outside of Bullpen to take it up."
    return f"It waits to be taken up, {before}."


def _explain_processing(found: MessageDetail, now: int) -> str:
    lane = found.lane
    if lane is None or lane.lease_expires_at is None:
        return "It runs."
    if lane.lease_expires_at < now:
        silent = format_duration(now - lane.lease_expires_at)
        return (
            f"Its worker {lane.claimed_by} was not heard of for {silent}: "
            f"{'it is taken up again soon.' if found.attended else 'and no processor runs.'}"
        )
    return f"It runs {_since(lane, now)}, by {lane.claimed_by}."


def _since(lane: LaneRecord, now: int) -> str:
    return f"for {format_duration(now - lane.claimed_at)}"


def _before(count: int) -> str:
    if count == 0:
        return "as the next"
    return f"{count} or more before it" if count == MAX_RUNS else f"{count} before it"


def _after(count: int) -> str:
    return {0: "before any run of it", 1: "after a run"}.get(count, f"after {count} runs")


def _together(found: MessageDetail) -> str:
    return "" if found.ran_with is None else f", by the run of {found.ran_with}"


def _closed(lane: LaneRecord | None) -> bool:
    return lane is not None and lane.state == LaneState.PAUSED
