"""The whole schema, every table of it loaded: for migrations, and for whoever looks at all."""

from __future__ import annotations

from importlib import import_module

from bullpen.core.models import FILES
from bullpen.core.models.base import Base

for _file in FILES:
    import_module(f"bullpen.core.models.{_file}")

METADATA = Base.metadata
