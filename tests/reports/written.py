"""Reports that no job has computed: Parquet files of given rows, and their manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import date
from itertools import groupby
from pathlib import Path

from bullpen.reports.manifest import (
    FactFile,
    FactTableState,
    Manifest,
    ReportState,
    ResultFile,
    write_manifest,
)
from bullpen.reports.read.database import SQL_TYPES
from bullpen.reports.read.values import Value
from bullpen.reports.report import Table, list_reports
from bullpen.reports.schema import Schema

Row = Mapping[str, Value]

BEGIN = 1_793_491_200_000
"""2026-11-01T00:00:00Z"""
END = 1_795_176_000_000
"""2026-11-20T12:00:00Z"""

PEOPLE: tuple[Row, ...] = tuple(
    {
        "day": date(2026, month, day),
        "channel": channel,
        "sender_id": id_,
        "sender": name,
        "messages": messages,
        "conversations": 1,
        "first_at": BEGIN,
        "last_at": END - 1000 * messages,
    }
    for month, day, channel, id_, name, messages in (
        (10, 31, "telegram", "1", "Ann", 4),
        (11, 18, "telegram", "1", "Ann", 30),
        (11, 19, "slack", "U2", "Bob", 12),
        (11, 20, "telegram", "1", "Ann", 3),
        (11, 20, "telegram", "2", "Cleo", 5),
    )
)


def write_parquet(path: Path, columns: Schema, rows: Iterable[Row]) -> int:
    """Write a file with these columns; returns its size."""
    # Not at the top: pytest freezes what its modules import, and duckdb then reports leaks.
    import duckdb

    path.parent.mkdir(parents=True, exist_ok=True)
    names = ", ".join(f'"{each.name}" {SQL_TYPES[each.type]}' for each in columns)
    marks = ", ".join("?" for _ in columns)
    with closing(duckdb.connect(":memory:", config={"threads": 1})) as database:
        database.execute(f"CREATE TABLE written ({names})")
        for row in rows:
            database.execute(
                f"INSERT INTO written VALUES ({marks})", [row.get(each.name) for each in columns]
            )
        database.execute(f"COPY written TO '{path}' (FORMAT parquet)")
    return path.stat().st_size


def result_files(
    directory: Path, table: Table, rows: Sequence[Row], run: int = 1
) -> tuple[ResultFile, ...]:
    """Write the rows of a table, a file a month."""
    files = []
    ordered = sorted(rows, key=lambda row: str(row["day"]))
    for month, group in groupby(ordered, key=lambda row: str(row["day"])[:7]):
        of_month = list(group)
        name = f"results/{table.name}/month={month}/{run}.parquet"
        size = write_parquet(directory / name, table.columns, of_month)
        files.append(
            ResultFile(name=name, month=month, rows=len(of_month), generated_at=END, bytes=size)
        )
    return tuple(files)


def fact_files(
    directory: Path, name: str, columns: Schema, rows: Mapping[str, Sequence[Row]], run: int = 1
) -> tuple[FactFile, ...]:
    """Write facts by UTC day."""
    files = []
    for day, of_day in rows.items():
        path = f"facts/{name}/date={day}/{run}.parquet"
        size = write_parquet(directory / path, columns, of_day)
        ids = [int(str(each["id"])) for each in of_day]
        files.append(
            FactFile(
                name=path,
                date=day,
                rows=len(of_day),
                first=min(ids),
                last=max(ids),
                earliest=BEGIN,
                latest=END,
                bytes=size,
            )
        )
    return tuple(files)


def write_reports(
    directory: Path,
    rows: Mapping[Table, Sequence[Row]],
    *,
    run: int = 1,
    zone: str = "Etc/UTC",
    facts: Mapping[str, tuple[FactFile, ...]] | None = None,
) -> Manifest:
    """Write these rows and a manifest that names the files."""
    files = {"attempts": (), "events": (), **(facts or {})}
    manifest = Manifest(
        store="test",
        zone=zone,
        run=run,
        generated_at=END + 5000,
        facts={
            name: FactTableState(upto=9, covers_from=BEGIN, covers_until=END, files=of_table)
            for name, of_table in files.items()
        },
        results={
            table.name: result_files(directory, table, each, run) for table, each in rows.items()
        },
        reports={each.name: ReportState(covers_until=END) for each in list_reports()},
    )
    directory.mkdir(parents=True, exist_ok=True)
    write_manifest(directory, manifest)
    return manifest
