"""Queries over live and archived rows, and over the messages of a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, Select, Table, bindparam, or_, union_all

from bullpen.core.models.messages import MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.models.responses import RESPONSES, RESPONSES_ARCHIVE

MESSAGE_TABLES = (MESSAGES, MESSAGES_ARCHIVE)
RESPONSE_TABLES = (RESPONSES, RESPONSES_ARCHIVE)


def live_and_archived(
    tables: tuple[Table, ...], select_from: Callable[[Table], Select[Any]]
) -> CompoundSelect[Any]:
    """The same query over the live table and its archive, combined."""
    return union_all(*(select_from(table) for table in tables))


def in_conversation(table: Table = MESSAGES) -> ColumnElement[bool]:
    """Whether a live or archived message belongs to `:conversation`.

    The first message has the id of the conversation as its `message_id`. The index of the live
    table does not contain first messages, so they are looked up by `message_id`.
    """
    c = table.c
    if table is MESSAGES_ARCHIVE:
        return c.conversation_id == bindparam("conversation")
    return or_(c.message_id == bindparam("conversation"), is_follow_up())


def is_follow_up() -> ColumnElement[bool]:
    """Whether a live message belongs to `:conversation` and is not its first one."""
    c = MESSAGES.c
    return (c.conversation_id == bindparam("conversation")) & (c.conversation_id != c.message_id)
