"""A statement of the hot path: an SQLAlchemy Core expression, compiled once for each database.

The expression is built when its text is first asked for: a module full of statements is imported
at next to no cost, and a process builds those that it runs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy.engine import Dialect
from sqlalchemy.sql.elements import ClauseElement

DIALECTS = ("sqlite", "postgresql")

Row_co = TypeVar("Row_co", covariant=True)

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_STATEMENT_NUMBERS = itertools.count(1)


class PreparedSql(NamedTuple):
    """A statement whose values have numbers, to be prepared under its name."""

    name: bytes
    sql: bytes
    keys: tuple[str, ...]
    """Which value is `$1`, which `$2`."""


class Statement(Generic[Row_co]):
    """SQL text for each dialect; `Row_co` is what a row of its answer looks like."""

    def __init__(self, make: Callable[[], ClauseElement]) -> None:
        self.text = CompiledSql(make)
        """The SQL by the dialect's name."""

    @cached_property
    def prepared(self) -> PreparedSql:
        """As PostgreSQL itself takes it."""
        text = self.text["postgresql"]
        keys = tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))
        sql = _PLACEHOLDER.sub(lambda found: f"${keys.index(found[1]) + 1}", text).replace(
            "%%", "%"
        )
        return PreparedSql(f"bullpen{next(_STATEMENT_NUMBERS)}".encode(), sql.encode(), keys)


class CompiledSql(dict[str, str]):
    """Compiles when a dialect is first asked for; from then on it is a plain look-up."""

    def __init__(self, make: Callable[[], ClauseElement]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> str:
        dialect = _dialect(name)
        compiled: Any = self._make().compile(dialect=dialect)
        text = str(compiled)
        for bind, bound in compiled.bind_names.items():
            if bind.required:
                continue
            # A constant stands in the text, so that no run has to hand it over.
            mark = f"%({bound})s" if dialect.paramstyle == "pyformat" else f":{bound}"
            text = text.replace(mark, compiled.render_literal_value(bind.value, bind.type))
        self[name] = text
        return text


@cache
def _dialect(name: str) -> Dialect:
    """How this database writes SQL. Each takes long to import, and most processes need one."""
    # Both styles are named, so that the same dictionary of values fits either driver.
    match name:
        case "sqlite":
            from sqlalchemy.dialects import sqlite

            return sqlite.dialect(paramstyle="named")
        case "postgresql":
            from sqlalchemy.dialects import postgresql

            return postgresql.psycopg.dialect()  # type: ignore[no-untyped-call]
        case _:
            raise KeyError(name)
