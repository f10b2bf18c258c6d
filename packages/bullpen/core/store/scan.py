"""Scans of a table by one of its indexes, in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cache

from sqlalchemy import Column, ColumnElement, Table, bindparam, func, or_, select, tuple_

from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text


@dataclass(frozen=True, eq=False)
class IndexScan:
    """An index, by the rows that stand in it and its order."""

    table: Table
    where: Callable[[], tuple[ColumnElement[bool], ...]]
    names: tuple[str, ...]
    """Of the columns that the index is sorted by."""
    moment: str
    """The column that `since` and `before` are about."""

    @property
    def keys(self) -> tuple[Column[int], ...]:
        """What the index is sorted by."""
        return tuple(self.table.c[name] for name in self.names)

    @property
    def when(self) -> Column[int]:
        """What `since` and `before` are about."""
        return self.table.c[self.moment]


def by_number(table: Table) -> IndexScan:
    """All of a table, by the number of each row."""
    return IndexScan(table, lambda: (), ("id",), "created_at")


def scan_in_state(road: IndexScan) -> IndexScan:
    """Of the same rows those in one state; no index knows it."""
    return IndexScan(
        road.table,
        lambda: (*road.where(), road.table.c.status == bindparam("state")),
        road.names,
        road.moment,
    )


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


@dataclass(frozen=True, slots=True)
class RowRef:
    """A message that is meant."""

    id: int
    message_id: str
    agent: str


@dataclass(frozen=True, slots=True)
class BoundScan:
    """A road, with what has to be known on it."""

    road: IndexScan
    values: dict[str, object] = field(default_factory=dict)


class BatchCursor:
    """The messages that are meant and stand on these ways, a piece at a time, by the roads' order.

    Each piece is asked for by itself, in any transaction; nothing is held meanwhile.
    """

    def __init__(
        self, ways: Sequence[BoundScan], selection: Selection, *, newest: bool = False
    ) -> None:
        self._ways = list(ways)
        self._selection = selection
        self._newest = newest
        self._last: dict[str, object] = {}

    def count(self, tx: Transaction) -> int:
        """How many are left of them now."""
        total = 0
        for way in self._ways:
            values = {**self._selection.values(tx), **way.values}
            row = tx.one(select_count(way.road, frozenset(values)), values)
            total += 0 if row is None else row[0]
        return total

    def next(self, tx: Transaction, limit: int) -> list[RowRef]:
        """The next ones; none if there are no more."""
        while self._ways:
            way = self._ways[0]
            values = {**self._selection.values(tx), **way.values}
            statement = select_batch(way.road, frozenset(values), bool(self._last), self._newest)
            rows = tx.all(statement, {**values, **self._last, "limit": limit})
            if rows:
                self._last = _last_keys(way.road.keys, rows[-1][3:])
                return [_row_ref(row) for row in rows]
            self._ways.pop(0)
            self._last = {}
        return []


@cache
def select_batch(
    road: IndexScan, names: frozenset[str], further: bool, newest: bool
) -> Statement[tuple[object, ...]]:
    """The next messages of a road, in its order or from its end."""
    c, keys = road.table.c, road.keys
    which = [*road.where(), *conditions(road.table, names, road.when)]
    if further:
        here = tuple_(*keys)
        last = tuple_(*(bindparam(f"last_{key.name}", type_=key.type) for key in keys))
        which.append(here < last if newest else here > last)
    return Statement(
        lambda: (
            select(c.id, c.message_id, c.agent, *(key.label(f"key_{key.name}") for key in keys))
            .where(*which)
            .order_by(*(key.desc() if newest else key.asc() for key in keys))
            .limit(bindparam("limit"))
        )
    )


@cache
def select_count(road: IndexScan, names: frozenset[str]) -> Statement[tuple[int]]:
    """How many messages of a road are meant."""
    which = conditions(road.table, names, road.when)
    return Statement(
        lambda: select(func.count()).select_from(road.table).where(*road.where(), *which)
    )


def _last_keys(keys: Sequence[Column[int]], values: Sequence[object]) -> dict[str, object]:
    return {f"last_{key.name}": value for key, value in zip(keys, values, strict=True)}


def _row_ref(row: tuple[object, ...]) -> RowRef:
    return RowRef(*row[:3])  # type: ignore[arg-type]
