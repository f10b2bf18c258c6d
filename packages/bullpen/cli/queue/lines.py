"""Messages in a table, and in the documents of programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from bullpen.cli.span import span
from bullpen.cli.visible import one_line
from bullpen.core.queue.browse import Seen
from bullpen.core.states import MessageState

HEADING = ("MESSAGE", "AGENT", "STATE", "AGE", "TEXT")
DEAD = ("MESSAGE", "AGENT", "KIND", "TRIES", "AGE", "WHY")
HELD = ("MESSAGE", "AGENT", "AGE", "WHY")
TEXT = 60
WHY = 160


def rows(found: Sequence[Seen], now: int) -> list[tuple[str, ...]]:
    """Any messages, with a heading."""
    return [HEADING, *(_row(each, now) for each in found)]


def dead_rows(found: Sequence[Seen], now: int) -> list[tuple[str, ...]]:
    """The dead, with a heading."""
    return [
        DEAD,
        *(
            (
                *(each.message_id, each.agent, each.error_kind or "", str(tries(each))),
                *(span(now - each.updated_at), one_line(each.last_error or "", WHY)),
            )
            for each in found
        ),
    ]


def held_rows(found: Sequence[Seen], now: int) -> list[tuple[str, ...]]:
    """The held, with a heading."""
    return [
        HELD,
        *(
            (
                *(each.message_id, each.agent, span(now - each.updated_at)),
                one_line(each.last_error or "", WHY),
            )
            for each in found
        ),
    ]


def as_fields(seen: Seen) -> dict[str, object]:
    """All of it for a program, and in short why it waits for a person and since when."""
    fields = asdict(seen)
    if seen.status in (MessageState.DEAD, MessageState.HELD):
        fields |= {"why": seen.last_error or "", "since": seen.updated_at}
    return fields


def tries(seen: Seen) -> int:
    """How many runs failed."""
    return seen.retry_count + seen.crash_count


def _row(seen: Seen, now: int) -> tuple[str, ...]:
    age = span(now - seen.created_at)
    return seen.message_id, seen.agent, seen.status, age, one_line(seen.message, TEXT)
