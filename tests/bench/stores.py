"""The databases that are measured: as the tests', but a PostgreSQL that waits for its disk."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from bullpen.core.queue.lanes import create_lane
from bullpen.core.settings import Durability, Settings
from bullpen.core.store.open import open_store
from bullpen.core.store.sqlite import SqliteStore
from tests.stores import Stores

KINDS = ("sqlite", "postgresql")


class BenchStores(Stores):
    """Makes migrated databases with lanes."""

    durable = True

    def with_lanes(self, kind: str, agents: int, *, fast: bool = False) -> Settings:
        """The settings of a new database whose agents are `agent0` and so on."""
        durability = Durability.FAST if fast else Durability.DURABLE
        settings = self.settings(kind, durability=durability)
        with self.opened(settings) as store, store.write() as tx:
            for name in agent_names(agents):
                create_lane(tx, name)
        return settings

    def copy(self, settings: Settings) -> Settings:
        """The settings of a copy of a SQLite database that nobody has open."""
        home = self.directory / f"home{next(self._numbers)}"
        home.mkdir(mode=0o700)
        shutil.copy(settings.home / "bullpen.db", home / "bullpen.db")
        return replace(settings, home=home)


def agent_names(count: int) -> list[str]:
    """The agents of a database with so many."""
    return [f"agent{number}" for number in range(count)]


def sqlite_file(settings: Settings) -> Path:
    """Where the settings have their database."""
    return settings.home / "bullpen.db"


def open_sqlite(settings: Settings) -> SqliteStore:
    """The store, known to be SQLite's."""
    store = open_store(settings)
    assert isinstance(store, SqliteStore)
    return store
