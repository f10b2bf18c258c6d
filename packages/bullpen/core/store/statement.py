"""A statement of the hot path: an SQLAlchemy Core expression, compiled once for each database."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.elements import ClauseElement

# Both styles are named, so that the same dictionary of values fits either driver.
DIALECTS: dict[str, Dialect] = {
    "sqlite": sqlite.dialect(paramstyle="named"),
    "postgresql": postgresql.psycopg.dialect(),  # type: ignore[no-untyped-call]
}

Row = TypeVar("Row", covariant=True)


class Statement(Generic[Row]):
    """SQL text for each dialect; `Row` is what a row of its answer looks like."""

    def __init__(self, element: ClauseElement) -> None:
        self._element = element
        self._texts: dict[str, str] = {}

    def text(self, dialect: str) -> str:
        """The SQL for this dialect."""
        found = self._texts.get(dialect)
        if found is None:
            found = self._texts[dialect] = self._compile(DIALECTS[dialect])
        return found

    def _compile(self, dialect: Dialect) -> str:
        compiled: Any = self._element.compile(dialect=dialect)
        text = str(compiled)
        for bind, name in compiled.bind_names.items():
            if bind.required:
                continue
            # A constant stands in the text, so that no run has to hand it over.
            mark = f"%({name})s" if dialect.paramstyle == "pyformat" else f":{name}"
            text = text.replace(mark, compiled.render_literal_value(bind.value, bind.type))
        return text
