"""Opens the database for an examination, and waits no longer than one may."""

from __future__ import annotations

import threading

from bullpen.core.doctor.patient import Database, open_database
from bullpen.core.errors import StoreUnavailable
from bullpen.core.settings import Settings


def open_within(settings: Settings, seconds: float) -> Database:
    """The database; one that does not answer in this time is as good as away."""
    found: list[Database] = []
    # A daemon, for nobody can end a thread that waits for a server.
    opening = threading.Thread(target=lambda: found.append(open_database(settings)), daemon=True)
    opening.start()
    opening.join(seconds)
    if found:
        return found[0]
    error = StoreUnavailable(f"the database did not answer within {seconds:g} s")
    return Database(None, error=error)
