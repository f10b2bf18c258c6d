"""Which messages are meant: by what they have in common, and by when it was."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sqlalchemy import Column, ColumnElement, Table, bindparam, func, or_

from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

ESCAPE = "!"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the messages have in common; None is anything."""

    agent: str | None = None
    channel: str | None = None
    sender: str | None = None
    """A person's name or id."""
    conversation: str | None = None
    kind: str | None = None
    """The kind of its last error."""
    error: str | None = None
    """A part of its last error, or the kind of it."""
    since: int | None = None
    before: int | None = None

    def values(self, tx: Transaction) -> dict[str, object]:
        """What is given, by its name; a text that no database can keep is refused."""
        given: dict[str, object] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, str):
                check_text(value, tx.settings.message_bytes, "what is looked for")
            if value is not None:
                given[each.name] = value
        if self.error is not None:
            given |= {"part": f"%{_escaped(self.error)}%"}
            given |= {"low": f"%{_escaped(self.error.lower())}%"}
        return given


def conditions(table: Table, names: frozenset[str], when: Column[int]) -> list[ColumnElement[bool]]:
    """What a selection with these names asks of a message; the conversation is not among it."""
    c = table.c
    each = {
        "agent": c.agent == bindparam("agent"),
        "channel": c.channel == bindparam("channel"),
        "sender": or_(c.sender == bindparam("sender"), c.sender_id == bindparam("sender")),
        "kind": c.error_kind == bindparam("kind"),
        "error": or_(c.error_kind == bindparam("error"), *_in(c.last_error)),
        "since": when >= bindparam("since"),
        "before": when <= bindparam("before"),
        "above": c.id > bindparam("above"),
    }
    return [each[name] for name in sorted(names & each.keys())]


def _in(error: Column[str]) -> tuple[ColumnElement[bool], ...]:
    """As it stands there, or in small letters: databases differ in which they know."""
    return (
        error.like(bindparam("part"), escape=ESCAPE),
        func.lower(error).like(bindparam("low"), escape=ESCAPE),
    )


def _escaped(part: str) -> str:
    for special in (ESCAPE, "%", "_"):
        part = part.replace(special, f"{ESCAPE}{special}")
    return part
