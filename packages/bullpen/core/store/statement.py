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
        self.text = Texts(element)
        """The SQL by the dialect's name."""


class Texts(dict[str, str]):
    """Compiles when a dialect is first asked for; from then on it is a plain look-up."""

    def __init__(self, element: ClauseElement) -> None:
        super().__init__()
        self._element = element

    def __missing__(self, name: str) -> str:
        dialect = DIALECTS[name]
        compiled: Any = self._element.compile(dialect=dialect)
        text = str(compiled)
        for bind, bound in compiled.bind_names.items():
            if bind.required:
                continue
            # A constant stands in the text, so that no run has to hand it over.
            mark = f"%({bound})s" if dialect.paramstyle == "pyformat" else f":{bound}"
            text = text.replace(mark, compiled.render_literal_value(bind.value, bind.type))
        self[name] = text
        return text
