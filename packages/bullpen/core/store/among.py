"""A condition with a list of any length in one value, so that the statement is always the same."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Boolean, Column, ColumnElement, Text, bindparam
from sqlalchemy.ext.compiler import compiles


class JsonIn(ColumnElement[bool]):
    """Whether the column is one of the numbers in the JSON list of this name."""

    inherit_cache = False
    type = Boolean()

    def __init__(self, column: Column[int], name: str) -> None:
        self.column = column
        self.numbers = bindparam(name, type_=Text)

    def self_group(self, against: object = None) -> JsonIn:
        """Itself: of a Boolean SQLite would be asked whether it is 1, which no index can tell."""
        return self


def encode_ids(ids: Iterable[int]) -> str:
    """The list as `JsonIn` takes it."""
    return json.dumps(list(ids))


@compiles(JsonIn, "sqlite")
def _compile_sqlite(element: JsonIn, compiler: Any, **more: Any) -> str:  # noqa: ANN401 - as SQLAlchemy
    column, given = (compiler.process(each, **more) for each in (element.column, element.numbers))
    return f"{column} IN (SELECT value FROM json_each({given}))"  # noqa: S608 - both compiled


@compiles(JsonIn, "postgresql")
def _compile_postgresql(element: JsonIn, compiler: Any, **more: Any) -> str:  # noqa: ANN401
    column, given = (compiler.process(each, **more) for each in (element.column, element.numbers))
    # An array and not a subquery: so the planner knows that there are few, and uses the index.
    found = f"SELECT jsonb_array_elements_text(CAST({given} AS jsonb))::bigint"
    return f"{column} = ANY (ARRAY({found}))"
