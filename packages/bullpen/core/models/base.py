"""What the tables share."""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Text, literal_column, text
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.types import TypeEngine

Auto = Literal["auto"]
Kind = TypeEngine[Any] | type[TypeEngine[Any]]

BigId = BigInteger().with_variant(Integer, "sqlite")
"""A number that grows with every row."""

Millis = BigInteger
"""A moment: milliseconds since 1970, UTC."""

METADATA = MetaData(naming_convention={"pk": "pk_%(table_name)s"})
"""The one schema, as far as it is loaded; migrations make it and are checked against it."""


def column(
    name: str, kind: Kind, *, primary_key: bool = False, autoincrement: bool | Auto = "auto"
) -> Column[Any]:
    """A column that always has a value."""
    return Column(name, kind, primary_key=primary_key, autoincrement=autoincrement, nullable=False)


def maybe(name: str, kind: Kind) -> Column[Any]:
    """A column that may be NULL."""
    return Column(name, kind)


def const(value: str | int) -> ColumnElement[Any]:
    """A value written into the SQL, so that a partial index's condition is recognised."""
    if isinstance(value, int):
        return literal_column(str(value), Integer)
    return literal_column("'" + value.replace("'", "''") + "'", Text)


def partial_index(name: str, *columns: str, where: str, postgresql: str | None = None) -> Index:
    """An index over the rows that `where` names; PostgreSQL's wording may differ.

    Told to SQLAlchemy here, the conditions would load both dialects, and each takes long. Only
    who makes or compares tables needs them: `metadata.py` tells them.
    """
    conditions = {"sqlite_where": text(where), "postgresql_where": text(postgresql or where)}
    return Index(name, *columns, info=conditions)
