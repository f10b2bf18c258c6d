"""Responses in a table."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bullpen.cli.span import span
from bullpen.cli.visible import one_line
from bullpen.core.outbox.browse import SeenResponse

HEADING = ("RESPONSE", "AGE", "FROM", "TO", "STATE", "TEXT", "WHY")
TEXT = 60
WHY = 100


def rows(found: Sequence[SeenResponse], now: int) -> list[tuple[str, ...]]:
    """These, with a heading."""
    return [HEADING, *(_row(each, now) for each in found)]


def author(seen: SeenResponse) -> str:
    """Who says it."""
    return f"@{seen.agent}" if seen.agent else "Bullpen"


def to(seen: SeenResponse) -> str:
    """Who gets it."""
    return one_line(f"{seen.channel}:{seen.sender_id or seen.sender}", TEXT)


def files(seen: SeenResponse) -> list[str]:
    """The files that go along."""
    return [str(each) for each in json.loads(seen.files or "[]")]


def _row(seen: SeenResponse, now: int) -> tuple[str, ...]:
    return (
        *(str(seen.id), span(now - seen.created_at), author(seen), to(seen), seen.status),
        *(one_line(seen.message, TEXT), one_line(seen.last_error or "", WHY)),
    )
