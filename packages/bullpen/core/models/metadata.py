"""The whole schema, every table of it loaded: for migrations, and for whoever looks at all."""

from __future__ import annotations

from importlib import import_module

from bullpen.core.models import FILES
from bullpen.core.models.base import METADATA

__all__ = ["METADATA"]

for _file in FILES:
    import_module(f"bullpen.core.models.{_file}")

for _table in METADATA.tables.values():
    for _index in _table.indexes:
        _index.dialect_kwargs.update(_index.info)
