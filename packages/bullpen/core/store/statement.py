"""A statement: an SQLAlchemy Core expression, compiled once per database, and what its rows become.

The expression is built on first use, so that importing a module full of statements costs next to
nothing, and a process builds only those that it runs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import field, fields, is_dataclass, make_dataclass
from enum import Enum
from functools import cache, cached_property
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar, get_args, get_type_hints

from sqlalchemy import Column, Table
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.elements import ClauseElement

DIALECTS = ("sqlite", "postgresql")

Row_co = TypeVar("Row_co", covariant=True)

Conversion = tuple[int, Callable[[Any], object]]
"""A position in a row, and what its value becomes."""

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_TEXT_OR_NAME = re.compile(r"'(?:[^']|'')*'|:(\w+)")
_STATEMENT_NUMBERS = itertools.count(1)


class PreparedSql(NamedTuple):
    """A statement with numbered parameters, to be prepared under its name."""

    name: bytes
    sql: bytes
    keys: tuple[str, ...]
    """The names of `$1`, `$2` and so on."""


class PositionalSql(NamedTuple):
    """A statement whose parameters are question marks, and what puts the values in their order."""

    sql: str
    values_of: Callable[[Mapping[str, object]], tuple[object, ...]]


class CompiledSql(dict[str, str]):
    """The SQL by dialect, compiled when it is first looked up."""

    def __init__(self, build: Callable[[], ClauseElement]) -> None:
        super().__init__()
        self._build = build

    def __missing__(self, name: str) -> str:
        dialect = _dialect(name)
        compiled: Any = self._build().compile(dialect=dialect)
        text = str(compiled)
        for bind, bound in compiled.bind_names.items():
            if bind.required:
                continue
            # Constants are written into the text, so that no caller has to pass them.
            mark = f"%({bound})s" if dialect.paramstyle == "pyformat" else f":{bound}"
            text = text.replace(mark, compiled.render_literal_value(bind.value, bind.type))
        self[name] = text
        return text


class Statement(Generic[Row_co]):
    """SQL text for each dialect, and the row factory: without one, rows are plain tuples."""

    def __init__(
        self,
        build: Callable[[], ClauseElement],
        row: Callable[..., Row_co] | None = None,
        *,
        waits_for: str | None = None,
    ) -> None:
        self.text = CompiledSql(build)
        """The SQL by the dialect's name."""
        self.waits_for = waits_for
        """The parameter that names the lane for whose lock the statement may wait."""
        self._row = row

    @cached_property
    def make_row(self) -> Callable[..., Row_co] | None:
        """Makes a row of its values; None if the tuple of values is the row."""
        return None if self._row is None else row_factory(self._row)

    @cached_property
    def positional(self) -> PositionalSql:
        """The statement for SQLite's driver, which would look each name up in linear time."""
        names: list[str] = []

        def mark(match: re.Match[str]) -> str:
            if match[1] is None:
                return match[0]
            names.append(match[1])
            return "?"

        sql = _TEXT_OR_NAME.sub(mark, self.text["sqlite"])
        if len(names) > 1:
            return PositionalSql(sql, itemgetter(*names))
        return PositionalSql(sql, lambda values: tuple([values[name] for name in names]))

    @cached_property
    def prepared(self) -> PreparedSql:
        """The statement in PostgreSQL's own form."""
        text = self.text["postgresql"]
        keys = tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))
        sql = _PLACEHOLDER.sub(lambda match: f"${keys.index(match[1]) + 1}", text).replace(
            "%%", "%"
        )
        return PreparedSql(f"bullpen{next(_STATEMENT_NUMBERS)}".encode(), sql.encode(), keys)


def columns(row: type, table: Table) -> tuple[Column[Any], ...]:
    """The table's columns for the fields of a row type.

    Fields at the end that have a default need no column.
    """
    names = [each.name for each in fields(row)]
    present = [name for name in names if name in table.c]
    if present != names[: len(present)]:
        raise TypeError(f"{table.name} has no column for {set(names) - set(present)} of {row}")
    return tuple(table.c[name] for name in present)


@cache
def row_factory(row: Callable[..., Row_co]) -> Callable[..., Row_co]:
    """A function from a row's values to the row.

    The databases know neither enums nor, in SQLite, booleans: they are made where the annotations
    of a dataclass ask for them.
    """
    kind: object = row
    if not is_dataclass(kind):
        return row
    names = [each.name for each in fields(kind)]
    hints = get_type_hints(kind)
    conversions = [
        (at, convert)
        for at, name in enumerate(names)
        if (convert := _conversion(hints[name])) is not None
    ]
    if any(each.kw_only for each in fields(kind)):
        return _keyword_factory(row, names, conversions)
    make = _quick_factory(row, names)
    return _positional_factory(make, conversions) if conversions else make


def _quick_factory(row: Callable[..., Row_co], names: list[str]) -> Callable[..., Row_co]:
    """A faster way to make a frozen dataclass with slots; the class itself if there is none.

    Its `__init__` makes a call for each field. So an object of a mutable class with the same slots
    is made, in a sixth of the time, and becomes one of the frozen class.
    """
    kind: Any = row
    slots = kind.__dict__.get("__slots__")
    if slots != tuple(names) or kind.__mro__ != (kind, object) or hasattr(kind, "__post_init__"):
        return row
    copies = [
        (each.name, Any, field(default=each.default, default_factory=each.default_factory))
        for each in fields(kind)
    ]
    twin: Any = make_dataclass(kind.__name__, copies, slots=True, repr=False, eq=False)

    def make(*values: object) -> Row_co:
        made = twin(*values)
        made.__class__ = kind
        return made  # type: ignore[no-any-return]

    return make


def _positional_factory(
    row: Callable[..., Row_co], conversions: list[Conversion]
) -> Callable[..., Row_co]:
    return lambda *values: row(*_converted(values, conversions))


def _keyword_factory(
    row: Callable[..., Row_co], names: list[str], conversions: list[Conversion]
) -> Callable[..., Row_co]:
    # A row may end before the fields that have a default.
    return lambda *values: row(**dict(zip(names, _converted(values, conversions), strict=False)))


def _converted(values: tuple[object, ...], conversions: list[Conversion]) -> list[object]:
    converted = list(values)
    for at, convert in conversions:
        if at < len(converted) and converted[at] is not None:
            converted[at] = convert(converted[at])
    return converted


def _conversion(hint: object) -> Callable[[Any], object] | None:
    """What makes a value of an annotation; None if it is one as the drivers give it."""
    for kind in get_args(hint) or (hint,):
        if isinstance(kind, type) and (kind in (bool, float) or issubclass(kind, Enum)):
            return kind
    return None


@cache
def _dialect(name: str) -> Dialect:
    """A database's dialect. Each takes long to import, and most processes need one."""
    # Both have named parameters, so that the same dictionary of values fits either driver.
    match name:
        case "sqlite":
            from sqlalchemy.dialects import sqlite

            return sqlite.dialect(paramstyle="named")
        case "postgresql":
            from sqlalchemy.dialects import postgresql

            return postgresql.psycopg.dialect()  # type: ignore[no-untyped-call]
        case _:
            raise KeyError(name)
