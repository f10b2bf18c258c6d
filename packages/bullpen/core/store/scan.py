"""Scans of a table by one of its indexes, in batches, with a selection of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cache

from sqlalchemy import Column, ColumnElement, Table, bindparam, func, or_, select, tuple_

from bullpen.core.models.base import const
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

ID_MARGIN = 1_000
"""How far ids may be out of the order of time: an id is taken before its transaction commits."""

LIKE_ESCAPE = "!"


@dataclass(frozen=True, eq=False)
class IndexScan:
    """An index of a table: the rows in it, and the columns that it is sorted by."""

    table: Table
    where: Callable[[], tuple[ColumnElement[bool], ...]]
    key_names: tuple[str, ...]
    moment: str
    """The column that a selection's `since` and `before` are about."""

    @property
    def keys(self) -> tuple[Column[int], ...]:
        """The columns that the index is sorted by."""
        return tuple(self.table.c[name] for name in self.key_names)

    @property
    def moment_column(self) -> Column[int]:
        """The column that a selection's `since` and `before` are about."""
        return self.table.c[self.moment]

    def in_state(self) -> IndexScan:
        """The same scan for the rows in `:state`, a column that is not in the index."""
        return IndexScan(
            self.table,
            lambda: (*self.where(), self.table.c.status == bindparam("state")),
            self.key_names,
            self.moment,
        )


@cache
def scan_by_id(table: Table, *, in_state: bool = False) -> IndexScan:
    """All rows of a table, or those in `:state`, by id."""
    if in_state:
        return scan_by_id(table).in_state()
    return IndexScan(table, lambda: (), ("id",), "created_at")


@dataclass(frozen=True, slots=True)
class BoundScan:
    """A scan, with the values that it needs besides the selection's."""

    scan: IndexScan
    values: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the selected rows have in common; None matches anything.

    The sender of a response is the person who gets it.
    """

    agent: str | None = None
    channel: str | None = None
    sender: str | None = None
    """A person's name or id."""
    conversation: str | None = None
    kind: str | None = None
    """The kind of the last error."""
    error: str | None = None
    """A part of the last error, or its kind."""
    since: int | None = None
    before: int | None = None

    def values(self, tx: Transaction) -> dict[str, object]:
        """The fields that are set, by name; a text that no database can store is refused."""
        values: dict[str, object] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, str):
                check_text(value, tx.settings.message_bytes, "the filter")
            if value is not None:
                values[each.name] = value
        if self.error is not None:
            values["part"] = f"%{_escape_like(self.error)}%"
            values["low"] = f"%{_escape_like(self.error.lower())}%"
        return values


@dataclass(frozen=True, slots=True)
class RowRef:
    """A selected message or response."""

    id: int
    message_id: str
    agent: str


class BatchCursor:
    """Reads the selected rows of some scans batch by batch, in the order of the scans.

    Each batch is one query, in any transaction; no cursor of the database stays open between two.
    """

    def __init__(
        self, scans: Sequence[BoundScan], selection: Selection, *, newest: bool = False
    ) -> None:
        self._scans = list(scans)
        self._selection = selection
        self._newest = newest
        self._last: dict[str, object] = {}

    def count(self, tx: Transaction) -> int:
        """How many rows are selected now, in the scans that are not finished."""
        total = 0
        for each in self._scans:
            values = {**self._selection.values(tx), **each.values}
            row = tx.one(select_count(each.scan, frozenset(values)), values)
            total += 0 if row is None else row[0]
        return total

    def next(self, tx: Transaction, limit: int) -> list[RowRef]:
        """The next batch; empty if there are no more rows."""
        while self._scans:
            scan = self._scans[0].scan
            values = {**self._selection.values(tx), **self._scans[0].values}
            statement = select_batch(scan, frozenset(values), bool(self._last), self._newest)
            rows = tx.all(statement, {**values, **self._last, "limit": limit})
            if rows:
                last_keys = rows[-1][1]
                self._last = {
                    f"last_{name}": value
                    for name, value in zip(scan.key_names, last_keys, strict=True)
                }
                return [row for row, _ in rows]
            self._scans.pop(0)
            self._last = {}
        return []


def conditions(
    table: Table, names: frozenset[str], moment: Column[int]
) -> list[ColumnElement[bool]]:
    """The conditions of a selection's values; its conversation is a scan of its own."""
    return [_CONDITIONS[name](table, moment) for name in sorted(names & _CONDITIONS.keys())]


@cache
def select_batch(
    scan: IndexScan, names: frozenset[str], continued: bool, newest: bool
) -> Statement[tuple[RowRef, tuple[int, ...]]]:
    """The next rows of a scan with their keys, in its order or from its end."""
    c, keys = scan.table.c, scan.keys
    where = [*scan.where(), *conditions(scan.table, names, scan.moment_column)]
    if continued:
        here = tuple_(*keys)
        last = tuple_(*(bindparam(f"last_{key.name}", type_=key.type) for key in keys))
        where.append(here < last if newest else here > last)
    return Statement(
        lambda: (
            select(c.id, c.message_id, c.agent, *(key.label(f"key_{key.name}") for key in keys))
            .where(*where)
            .order_by(*(key.desc() if newest else key.asc() for key in keys))
            .limit(bindparam("limit"))
        ),
        lambda id_, message_id, agent, *last: (RowRef(id_, message_id, agent), last),
    )


@cache
def select_count(scan: IndexScan, names: frozenset[str]) -> Statement[tuple[int]]:
    """How many rows of a scan are selected."""
    where = [*scan.where(), *conditions(scan.table, names, scan.moment_column)]
    return Statement(lambda: select(func.count()).select_from(scan.table).where(*where))


def newest_by_id(
    tx: Transaction, table: Table, selection: Selection, state: str | None, limit: int
) -> list[RowRef]:
    """The selected rows with the highest ids, in one state or in any."""
    values = _id_floor(tx, table, selection)
    if state is not None:
        values["state"] = state
    scan = BoundScan(scan_by_id(table, in_state=state is not None), values)
    return BatchCursor([scan], selection, newest=True).next(tx, limit)


_CONDITIONS: dict[str, Callable[[Table, Column[int]], ColumnElement[bool]]] = {
    "agent": lambda table, _: table.c.agent == bindparam("agent"),
    "channel": lambda table, _: table.c.channel == bindparam("channel"),
    "sender": lambda table, _: or_(
        table.c.sender == bindparam("sender"), table.c.sender_id == bindparam("sender")
    ),
    "kind": lambda table, _: table.c.error_kind == bindparam("kind"),
    "error": lambda table, _: _error_matches(table),
    "since": lambda _, moment: moment >= bindparam("since"),
    "before": lambda _, moment: moment <= bindparam("before"),
    "above": lambda table, _: table.c.id > bindparam("above"),
}


def _error_matches(table: Table) -> ColumnElement[bool]:
    kind = [table.c.error_kind == bindparam("error")] if "error_kind" in table.c else []
    return or_(*kind, *_contains(table.c.last_error))


def _contains(error: Column[str]) -> tuple[ColumnElement[bool], ...]:
    """As written or in lower case: the databases differ in which letters they can lower."""
    return (
        error.like(bindparam("part"), escape=LIKE_ESCAPE),
        func.lower(error).like(bindparam("low"), escape=LIKE_ESCAPE),
    )


def _escape_like(part: str) -> str:
    for special in (LIKE_ESCAPE, "%", "_"):
        part = part.replace(special, f"{LIKE_ESCAPE}{special}")
    return part


@cache
def _select_last_before(table: Table) -> Statement[tuple[int]]:
    c = table.c
    older = select(c.id).where(c.created_at < bindparam("since"))
    return Statement(lambda: older.order_by(c.id.desc()).limit(const(1)))


def _id_floor(tx: Transaction, table: Table, selection: Selection) -> dict[str, object]:
    """The scan ends at this id: every row from `since` on has a higher one."""
    if selection.since is None:
        return {}
    row = tx.one(_select_last_before(table), {"since": selection.since})
    return {"above": 0 if row is None else row[0] - ID_MARGIN}
