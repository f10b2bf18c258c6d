"""What the tables share."""

from __future__ import annotations

from typing import Annotated, Any

from sqlalchemy import BigInteger, Index, Integer, MetaData, Table, Text, literal_column, text
from sqlalchemy.orm import DeclarativeBase, mapped_column
from sqlalchemy.sql.elements import ColumnElement

BigId = BigInteger().with_variant(Integer, "sqlite")

Id = Annotated[int, mapped_column(BigId, primary_key=True)]
"""A number that grows with every row."""

Millis = Annotated[int, mapped_column(BigInteger)]
"""A moment: milliseconds since 1970, UTC."""

MaybeMillis = Annotated[int | None, mapped_column(BigInteger)]


class Base(DeclarativeBase):
    """The one schema; Alembic's migrations make it and are checked against it."""

    metadata = MetaData(naming_convention={"pk": "pk_%(table_name)s"})
    type_annotation_map = {str: Text()}  # noqa: RUF012 - SQLAlchemy's own idiom


def table_of(model: type[Base]) -> Table:
    """The table behind a model, for statements."""
    table = model.__table__
    assert isinstance(table, Table)
    return table


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
