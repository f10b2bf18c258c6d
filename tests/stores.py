"""The two stores under test, made from a migrated template so that each test has its own."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bullpen.core.clock import Clock
from bullpen.core.ids import Ids
from bullpen.core.settings import Settings
from bullpen.core.store import migrate
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.clones import TEMPLATE, Clones
from tests.postgres import PostgresServer

START = 1_700_000_000_000


def all_stores() -> bool:
    """Whether to run on both stores also what has the mark `one_store`: `make all-stores`."""
    return bool(os.environ.get("BULLPEN_TEST_ALL_STORES"))


class FakeClock:
    """A clock that a test moves."""

    def __init__(self, now: int = START) -> None:
        self._now = now
        self._monotonic = 0

    def now(self) -> int:
        return self._now

    def monotonic(self) -> int:
        return self._monotonic

    def advance(self, milliseconds: int) -> None:
        """Let so much time pass."""
        self._now += milliseconds
        self._monotonic += milliseconds

    def set_by(self, milliseconds: int) -> None:
        """Set the clock forward, or back; no time passes."""
        self._now += milliseconds


class Stores:
    """Makes fresh databases: a copied file on SQLite, a cloned database on PostgreSQL."""

    durable = False
    """Whether the server of PostgreSQL waits for its disk."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._numbers = itertools.count()
        self._template: Path | None = None
        self._server: PostgresServer | None = None
        self._clones: Clones | None = None
        self._lent: ExitStack | None = None

    @contextmanager
    def one_test(self) -> Iterator[None]:
        """While it lasts, databases of PostgreSQL are lent: that costs much less."""
        try:
            with ExitStack() as self._lent:
                yield
        finally:
            self._lent = None

    def settings(self, kind: str, **changes: object) -> Settings:
        """Settings of a new home with a new, migrated, empty database."""
        home = self.directory / f"home{next(self._numbers)}"
        home.mkdir(mode=0o700)
        url = ""
        if kind == "sqlite":
            shutil.copy(self.sqlite_template(), home / "bullpen.db")
        elif self._lent is None:
            url = self.postgres_url(f"test{next(self._numbers)}")
        else:
            url = self.server.url(self._lent.enter_context(self.clones.one()))
        values = {"home": home, "workspace": home / "workspace", "database_url": url, **changes}
        return Settings(**values)  # type: ignore[arg-type]

    @contextmanager
    def opened(
        self, settings: Settings, clock: Clock | None = None, ids: Ids | None = None
    ) -> Iterator[Store]:
        """The store of these settings, closed afterwards."""
        store = open_store(settings, clock=clock, ids=ids)
        try:
            yield store
        finally:
            store.close()

    @property
    def server(self) -> PostgresServer:
        """The PostgreSQL server of this test process, started when it is first asked for."""
        if self._server is None:
            self._server = PostgresServer(durable=self.durable)
            self._server.start()
            self._server.create_database(TEMPLATE)
            settings = Settings(home=self.directory, database_url=self._server.url(TEMPLATE))
            store = open_store(settings, check=False)
            migrate.upgrade(store)
            store.close()
        return self._server

    @property
    def clones(self) -> Clones:
        """The databases of that server that are lent."""
        if self._clones is None:
            self._clones = Clones(self.server)
        return self._clones

    def sqlite_template(self) -> Path:
        """A migrated file."""
        if self._template is None:
            path = self.directory / "template.db"
            settings = Settings(home=self.directory, database_url=f"sqlite:///{path}")
            store = open_store(settings, check=False)
            migrate.upgrade(store)
            store.close()
            self._template = path
        return self._template

    def postgres_url(self, name: str) -> str:
        """The address of a new database, cloned from a migrated one."""
        self.server.create_database(name, template=TEMPLATE)
        return self.server.url(name)

    def close(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.close()
