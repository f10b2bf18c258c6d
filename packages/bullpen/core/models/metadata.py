"""The whole schema, every table of it built: for migrations, and for whoever looks at all."""

from __future__ import annotations

from functools import cache

from sqlalchemy import MetaData

from bullpen.core.models.base import METADATA, TABLES


@cache
def whole_schema() -> MetaData:
    """All tables, with what each dialect has to know of their indexes."""
    for table in TABLES:
        for index in table.indexes:
            index.dialect_kwargs.update(index.info)
    return METADATA
