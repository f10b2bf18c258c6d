"""Which messages or responses are meant: by what they have in common, and by when it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from sqlalchemy import Column, ColumnElement, Table, bindparam, func, or_

from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

LIKE_ESCAPE = "!"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What they have in common; None is anything. Of a response the sender is who gets it."""

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
            given |= {"part": f"%{_escape_like(self.error)}%"}
            given |= {"low": f"%{_escape_like(self.error.lower())}%"}
        return given


def conditions(table: Table, names: frozenset[str], when: Column[int]) -> list[ColumnElement[bool]]:
    """What a selection with these names asks of a message; the conversation is not among it."""
    return [_CONDITIONS[name](table, when) for name in sorted(names & _CONDITIONS.keys())]


_CONDITIONS: dict[str, Callable[[Table, Column[int]], ColumnElement[bool]]] = {
    "agent": lambda table, _: table.c.agent == bindparam("agent"),
    "channel": lambda table, _: table.c.channel == bindparam("channel"),
    "sender": lambda table, _: or_(
        table.c.sender == bindparam("sender"), table.c.sender_id == bindparam("sender")
    ),
    "kind": lambda table, _: table.c.error_kind == bindparam("kind"),
    "error": lambda table, _: _error_matches(table),
    "since": lambda _, when: when >= bindparam("since"),
    "before": lambda _, when: when <= bindparam("before"),
    "above": lambda table, _: table.c.id > bindparam("above"),
}


def _error_matches(table: Table) -> ColumnElement[bool]:
    kind = [table.c.error_kind == bindparam("error")] if "error_kind" in table.c else []
    return or_(*kind, *_contains(table.c.last_error))


def _contains(error: Column[str]) -> tuple[ColumnElement[bool], ...]:
    """As it stands there, or in small letters: databases differ in which they know."""
    return (
        error.like(bindparam("part"), escape=LIKE_ESCAPE),
        func.lower(error).like(bindparam("low"), escape=LIKE_ESCAPE),
    )


def _escape_like(part: str) -> str:
    for special in (LIKE_ESCAPE, "%", "_"):
        part = part.replace(special, f"{LIKE_ESCAPE}{special}")
    return part
