"""Results: the rows of a report's table, one Parquet file a month.

Spark computes the rows of some days. They replace the rows of these days in the files of their
months; the other days of a month are taken over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from bullpen.core.errors import ReportsError
from bullpen.reports.facts.read import arrow_schema
from bullpen.reports.job.days import Days
from bullpen.reports.job.parquet import read_parquet, write_parquet
from bullpen.reports.manifest import ResultFile
from bullpen.reports.report import Facts, Table

if TYPE_CHECKING:
    import pyarrow as pa


def compute_table(table: Table, facts: Facts, days: Days) -> pa.Table:
    """The rows of these days, with the declared columns and types, sorted."""
    frame = table.transform(facts)
    names = [each.name for each in table.columns]
    if sorted(frame.columns) != sorted(names):
        raise _refused(table, _differences(frame.columns, names))
    wanted = days.of_day()
    if wanted is not None:
        frame = frame.where(wanted)
    rows = _cast(table, frame.select(*names).toArrow())
    _require_unique(table, rows)
    return rows.sort_by([(each, "ascending") for each in table.grain])


def save_table(
    directory: Path,
    table: Table,
    rows: pa.Table,
    days: Days,
    before: Iterable[ResultFile],
    now: int,
) -> tuple[ResultFile, ...]:
    """Write the months that the days are in; returns the files of all months."""
    old = {each.month: each for each in before}
    new = dict(_by_month(rows))
    months = {*new, *(month for month in old if days.days is None or _has_day(days, month))}
    files = {month: file for month, file in old.items() if month not in months}
    for month in sorted(months):
        parts = [new[month]] if month in new else []
        if month in old and days.days is not None:
            parts += _other_days(directory, table, old[month], days)
        written = _write(directory, table, month, parts, now)
        if written is not None:
            files[month] = written
    return tuple(files[month] for month in sorted(files))


def _has_day(days: Days, month: str) -> bool:
    return any(f"{each:%Y-%m}" == month for each in days.days or ())


def _write(
    directory: Path, table: Table, month: str, parts: list[pa.Table], now: int
) -> ResultFile | None:
    """Write the rows of a month; None if it has none."""
    import pyarrow as pa

    if not (count := sum(each.num_rows for each in parts)):
        return None
    rows = pa.concat_tables(parts).sort_by([(each, "ascending") for each in table.grain])
    name = f"results/{table.name}/month={month}/{uuid4().hex[:12]}.parquet"
    size = write_parquet(directory / name, [rows])
    return ResultFile(name=name, month=month, rows=count, generated_at=now, bytes=size)


def _other_days(directory: Path, table: Table, file: ResultFile, days: Days) -> list[pa.Table]:
    """The rows of a file but those of the days."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = read_parquet(directory / file.name)
    if rows.schema.names != [each.name for each in table.columns]:
        return []
    computed = pa.array(sorted(days.days or ()), pa.date32())
    return [rows.filter(pc.invert(pc.is_in(rows["day"], computed)))]


def _by_month(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    import pyarrow.compute as pc

    months = pc.strftime(rows["day"], "%Y-%m")
    for month in pc.unique(months).to_pylist():
        yield month, rows.filter(pc.equal(months, month))


def _cast(table: Table, rows: pa.Table) -> pa.Table:
    """The rows with the declared types."""
    import pyarrow as pa
    import pyarrow.types as kinds

    wanted = arrow_schema(table.columns)
    allowed: Mapping[pa.DataType, tuple[object, ...]] = {
        pa.int64(): (kinds.is_integer,),
        pa.float64(): (kinds.is_floating,),
    }
    for field in wanted:
        found = rows.schema.field(field.name).type
        checks = allowed.get(field.type, ())
        if found != field.type and not any(check(found) for check in checks):  # type: ignore[operator]
            raise _refused(table, f"column {field.name} is {found}, not {field.type}")
    if rows["day"].null_count:
        raise _refused(table, "column day is NULL in some rows")
    return rows.cast(wanted)


def _require_unique(table: Table, rows: pa.Table) -> None:
    import pyarrow.compute as pc

    counted = rows.group_by(list(table.grain)).aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted["count_all"], 1))
    if twice.num_rows:
        first = twice.slice(0, 1).to_pylist()[0]
        values = ", ".join(f"{each}={first[each]}" for each in table.grain)
        raise _refused(table, f"more than one row has {values}")


def _differences(found: Iterable[str], wanted: Iterable[str]) -> str:
    missing, more = {*wanted} - {*found}, {*found} - {*wanted}
    parts = [f"column {each} is missing" for each in sorted(missing)]
    parts += [f"column {each} is not declared" for each in sorted(more)]
    return ", ".join(parts) or "a column is there twice"


def _refused(table: Table, text: str) -> ReportsError:
    return ReportsError(f"table {table.name}: {text}", hint="Correct the code of the report.")
