"""How often a SQLite peer syncs to disk, set alike so that the peers can be compared."""

import sqlite3
from typing import Final, Literal

Durability = Literal["durable", "fast"]

SYNCHRONOUS: Final[dict[Durability, int]] = {"durable": 2, "fast": 1}  # FULL and NORMAL


def apply(connection: sqlite3.Connection, durability: Durability) -> None:
    """Set how often `connection` syncs to disk, then make sure that it holds, in WAL mode."""
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS[durability]}")
    verify(connection, durability)


def verify(connection: sqlite3.Connection, durability: Durability) -> None:
    """Raise unless `connection` is in WAL mode and syncs to disk as `durability` says."""
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    if (journal, synchronous) != ("wal", SYNCHRONOUS[durability]):
        message = f"journal_mode={journal} synchronous={synchronous} is not {durability}"
        raise RuntimeError(message)
