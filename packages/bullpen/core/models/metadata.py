"""The whole schema, every table of it loaded: for migrations, and for whoever looks at all."""

from __future__ import annotations

from importlib import import_module

from bullpen.core.models import FILES
from bullpen.core.models.base import Base

for _file in FILES:
    import_module(f"bullpen.core.models.{_file}")

METADATA = Base.metadata

for _table in METADATA.tables.values():
    for _index in _table.indexes:
        _index.dialect_kwargs.update(_index.info)
