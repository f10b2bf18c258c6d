"""The columns of a message as a run sees it."""

from __future__ import annotations

from dataclasses import fields

from sqlalchemy import Column

from bullpen.core.message import Message
from bullpen.core.models import MESSAGES


def message_columns() -> tuple[Column[object], ...]:
    """The columns of a message, in the order of its fields."""
    return tuple(MESSAGES.c[field.name] for field in fields(Message))


MessageTuple = tuple[
    int,
    str,
    str,
    str,
    str | None,
    str,
    str,
    str | None,
    str | None,
    int,
    int,
    str,
    str | None,
    int,
    str | None,
    str | None,
    int,
    int | None,
    str | None,
    str | None,
    int,
]
