"""A database that is away for a while: its file elsewhere, its server's database renamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psycopg
from sqlalchemy.engine import make_url

from bullpen.core.settings import Settings
from tests.clones import TEMPLATE

# In this order: whoever finds the first opens it, and makes what is missing of the others.
NAMES = ("bullpen.db", "bullpen.db-wal", "bullpen.db-shm", "bullpen.db-turn")


@contextmanager
def away(settings: Settings) -> Iterator[Settings]:
    """The same database where a view does not look for it, for the length of the block."""
    if not settings.database_url:
        elsewhere = settings.home / "elsewhere"
        elsewhere.mkdir()
        _move(settings.home, elsewhere, NAMES)
        yield replace(settings, database_url=f"sqlite:///{elsewhere / 'bullpen.db'}")
        _move(elsewhere, settings.home, NAMES[::-1])
        return
    url = make_url(settings.database_url)
    name = url.database or ""
    _rename(settings, name, f"{name}away")
    other = url.set(database=f"{name}away").render_as_string(hide_password=False)
    yield replace(settings, database_url=other)
    _rename(settings, f"{name}away", name)


def _move(source: Path, target: Path, names: Sequence[str]) -> None:
    for name in names:
        with suppress(FileNotFoundError):  # who had it open last takes it away
            (source / name).rename(target / name)


def _rename(settings: Settings, old: str, new: str) -> None:
    url = make_url(settings.database_url).set(drivername="postgresql", database=TEMPLATE)
    address = url.render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as server:
        # Nobody may come back between the end of the others and the new name.
        server.execute(f'ALTER DATABASE "{old}" ALLOW_CONNECTIONS false'.encode())
        server.execute(
            b"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = %s",
            (old,),
        )
        server.execute(f'ALTER DATABASE "{old}" RENAME TO "{new}"'.encode())
        server.execute(f'ALTER DATABASE "{new}" ALLOW_CONNECTIONS true'.encode())
