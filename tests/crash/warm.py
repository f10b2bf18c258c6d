"""What every victim needs, imported and compiled once in the server that they are forked from."""

from __future__ import annotations

import gc

import bullpen.core.store.postgres  # noqa: F401 - its driver takes long to import
import tests.crash.load
import tests.crash.transactions
import tests.crash.victim  # noqa: F401
from bullpen.core.store.statement import DIALECTS, Statement

for each in gc.get_objects():
    if isinstance(each, Statement):
        for dialect in DIALECTS:
            each.text[dialect]
