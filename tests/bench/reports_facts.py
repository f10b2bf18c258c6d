"""The facts that the reports are measured on: a part of a history at a time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def copy_facts(source: Path, target: Path, upto: int) -> None:
    """Copy the attempts up to an id, and the events until the same time, that are not there yet."""
    with closing(sqlite3.connect(target)) as database, database:
        database.execute("ATTACH ? AS history", (str(source),))
        for table, where in (
            ("attempts", "id <= :upto"),
            (
                "events",
                "created_at <= (SELECT finished_at FROM history.attempts WHERE id = :upto)",
            ),
        ):
            database.execute(
                f"INSERT INTO main.{table} SELECT * FROM history.{table} WHERE {where}"
                f" AND id > (SELECT coalesce(max(id), 0) FROM main.{table})",
                {"upto": upto},
            )
