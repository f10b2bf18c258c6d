"""Why a response stands as it stands, and what a person can do about it."""

from __future__ import annotations

from typing import assert_never

from bullpen.cli.response import CLI
from bullpen.cli.span import format_duration
from bullpen.core.message import PULL_CHANNELS
from bullpen.core.outbox.browse import ResponseRecord
from bullpen.core.outbox.hold import Hold
from bullpen.core.states import ResponseState


def explain_response(found: ResponseRecord, hold: Hold | None, now: int) -> str:
    """In words, why."""
    why = found.last_error or "nobody said why"
    match ResponseState(found.status):
        case ResponseState.PENDING:
            return _explain_pending(found, hold, now)
        case ResponseState.ACKED:
            return (
                "It got there."
                if found.channel not in PULL_CHANNELS
                else "It was read, or its day is over."
            )
        case ResponseState.DEAD:
            return f"It is not delivered any more: {why}"
        case ResponseState.UNKNOWN:
            return f"It was sent, and nobody knows whether it got there: {why}"
        case never:
            assert_never(never)


def next_steps(found: ResponseRecord) -> list[str]:
    """Commands for a person."""
    match ResponseState(found.status):
        case ResponseState.PENDING if found.channel in PULL_CHANNELS:
            channel = "" if found.channel == CLI else f" --channel {found.channel}"
            return [f"bullpen response read{channel}"]
        case ResponseState.PENDING:
            return [f"bullpen response drop {found.id}"]
        case ResponseState.DEAD:
            return [f"bullpen response retry {found.id}"]
        case ResponseState.UNKNOWN:
            return [
                f"bullpen response retry {found.id} (it may arrive twice)",
                f"bullpen response drop {found.id}",
            ]
        case ResponseState.ACKED:
            return []
        case never:
            assert_never(never)


def _explain_pending(found: ResponseRecord, hold: Hold | None, now: int) -> str:
    if found.channel in PULL_CHANNELS:
        return "It waits to be read."
    if hold is not None:
        return f"It waits, for nothing goes out: {hold.reason}"
    tried = ""
    if found.delivery_attempts:
        times = "once" if found.delivery_attempts == 1 else f"{found.delivery_attempts} times"
        tried = f" It was tried {times}: {found.last_error or 'nobody said why'}"
    if found.available_at > now:
        return f"It is on its way, or tried again in {format_duration(found.available_at - now)}.{tried}"
    return f"It waits for the client of {found.channel} to take it.{tried}"
