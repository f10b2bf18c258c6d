"""What the numbers depend on: the machine and the versions; no names, no paths."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

import psutil
import psycopg

from tests.bench.stores import BenchStores

LIBRARIES = (
    *("sqlalchemy", "psycopg", "asyncpg", "huey", "litequeue", "persist-queue", "pgqueuer"),
    *("procrastinate", "uvloop"),
)
SYNCS = 50


def facts(stores: BenchStores) -> dict[str, object]:
    """Everything that a reader of the numbers should know."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "file_system": _file_system(stores.directory),
        "sync_us": round(_sync(stores.directory)),
        "load": [round(each, 2) for each in os.getloadavg()],
        "sqlite": sqlite3.sqlite_version,
        "postgresql": _postgres(stores),
        "libraries": {name: found for name in LIBRARIES if (found := _version(name))},
    }


def _postgres(stores: BenchStores) -> str:
    url = stores.server.url("postgres").replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    assert row is not None
    return str(row[0])


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _file_system(directory: Path) -> str:
    mounts = {Path(each.mountpoint): each.fstype for each in psutil.disk_partitions(all=True)}
    above = (directory.resolve(), *directory.resolve().parents)
    return next((mounts[each] for each in above if each in mounts), "unknown")


def _sync(directory: Path) -> float:
    """Microseconds in which the disk confirms a page, as a durable commit waits for it."""
    path = directory / "sync"
    times = []
    with path.open("wb") as file:
        for _ in range(SYNCS):
            file.write(bytes(4096))
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - started)
    path.unlink()
    return median(times) * 1e6
