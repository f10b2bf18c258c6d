"""Messages in a table, and in the documents of programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from bullpen.cli.span import format_duration
from bullpen.cli.visible import one_line
from bullpen.core.queue.browse import MessageRecord
from bullpen.core.states import MessageState

MESSAGES_HEADING = ("MESSAGE", "AGENT", "STATE", "AGE", "TEXT")
DEAD_HEADING = ("MESSAGE", "AGENT", "KIND", "TRIES", "AGE", "WHY")
HELD_HEADING = ("MESSAGE", "AGENT", "AGE", "WHY")
TEXT_CHARS = 60
REASON_CHARS = 160


def message_rows(found: Sequence[MessageRecord], now: int) -> list[tuple[str, ...]]:
    """Any messages, with a heading."""
    return [MESSAGES_HEADING, *(_message_row(each, now) for each in found)]


def dead_rows(found: Sequence[MessageRecord], now: int) -> list[tuple[str, ...]]:
    """The dead, with a heading."""
    return [
        DEAD_HEADING,
        *(
            (
                *(each.message_id, each.agent, each.error_kind or "", str(count_attempts(each))),
                *(
                    format_duration(now - each.updated_at),
                    one_line(each.last_error or "", REASON_CHARS),
                ),
            )
            for each in found
        ),
    ]


def held_rows(found: Sequence[MessageRecord], now: int) -> list[tuple[str, ...]]:
    """The held, with a heading."""
    return [
        HELD_HEADING,
        *(
            (
                *(each.message_id, each.agent, format_duration(now - each.updated_at)),
                one_line(each.last_error or "", REASON_CHARS),
            )
            for each in found
        ),
    ]


def message_fields(seen: MessageRecord) -> dict[str, object]:
    """All of it for a program, and in short why it waits for a person and since when."""
    fields = asdict(seen)
    if seen.status in (MessageState.DEAD, MessageState.HELD):
        fields |= {"why": seen.last_error or "", "since": seen.updated_at}
    return fields


def count_attempts(seen: MessageRecord) -> int:
    """How many runs failed."""
    return seen.retry_count + seen.crash_count


def _message_row(seen: MessageRecord, now: int) -> tuple[str, ...]:
    age = format_duration(now - seen.created_at)
    return seen.message_id, seen.agent, seen.status, age, one_line(seen.message, TEXT_CHARS)
