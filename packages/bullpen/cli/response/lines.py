"""Responses in a table."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bullpen.cli.span import format_duration
from bullpen.cli.visible import one_line
from bullpen.core.outbox.browse import ResponseRecord

HEADING = ("RESPONSE", "AGE", "FROM", "TO", "STATE", "TEXT", "WHY")
TEXT_CHARS = 60
REASON_CHARS = 100


def response_rows(found: Sequence[ResponseRecord], now: int) -> list[tuple[str, ...]]:
    """These, with a heading."""
    return [HEADING, *(_row(each, now) for each in found)]


def author(seen: ResponseRecord) -> str:
    """Who says it."""
    return f"@{seen.agent}" if seen.agent else "Bullpen"


def recipient(seen: ResponseRecord) -> str:
    """Who gets it."""
    return one_line(f"{seen.channel}:{seen.sender_id or seen.sender}", TEXT_CHARS)


def file_names(seen: ResponseRecord) -> list[str]:
    """The files that go along."""
    return [str(each) for each in json.loads(seen.files or "[]")]


def _row(seen: ResponseRecord, now: int) -> tuple[str, ...]:
    return (
        *(
            str(seen.id),
            format_duration(now - seen.created_at),
            author(seen),
            recipient(seen),
            seen.status,
        ),
        *(one_line(seen.message, TEXT_CHARS), one_line(seen.last_error or "", REASON_CHARS)),
    )
