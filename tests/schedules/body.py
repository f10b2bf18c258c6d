"""What a test's processes do: they look for due schedules, until they are killed."""

from __future__ import annotations

import time

from bullpen.core.schedules.fire import fire_due_schedules
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from tests.crash.children import orphaned


def look(settings: Settings) -> None:
    """Tick and tick."""
    store = open_store(settings)
    while not orphaned():
        time.sleep(min(fire_due_schedules(store), 0.02))
