"""Landing: new facts are read from the store by ranges of ids and written as Parquet, by UTC date.

A range is read and written by one function, in a task of Spark or, if there is little to land,
without Spark (`land_here`). A file is complete when it appears under its name. It counts when a
manifest names it, so what a failed or repeated task wrote does no harm.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from bullpen.core.errors import ReportsDamaged
from bullpen.core.text import format_count
from bullpen.reports.facts.read import RANGE_ROWS, IdRange, StoreAddress, read_range
from bullpen.reports.facts.tables import find_table
from bullpen.reports.job.days import TIMES, touched_days, utc_dates
from bullpen.reports.job.parquet import write_parquet
from bullpen.reports.job.progress import Progress, Step, Tell
from bullpen.reports.job.upkeep import has_wrong_size
from bullpen.reports.manifest import FactFile, FactTableState

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

MANY_SPANS = 1_000
"""Of rows with one date: sorting costs less than a slice for each."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of ids of a fact table."""

    table: str
    first: int
    last: int

    @property
    def ids(self) -> int:
        """The number of its ids, also of those without a row."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Landed:
    """A file that was written, and what it has to do with the results."""

    table: str
    file: FactFile
    oldest: int
    """The earliest time by which the rows are in files."""
    days: frozenset[date]
    """The local days that its rows touch."""

    @classmethod
    def from_json(cls, text: str) -> Landed:
        """What another process wrote."""
        fields = json.loads(text)
        file, days = FactFile(**fields.pop("file")), map(date.fromordinal, fields.pop("days"))
        return cls(**fields, file=file, days=frozenset(days))

    def to_json(self) -> str:
        """It as JSON, for another process."""
        return json.dumps({**asdict(self), "days": [each.toordinal() for each in self.days]})


@dataclass(frozen=True, slots=True)
class Landing:
    """Writes facts into the directory of the reports. Spark's tasks get a copy of it."""

    directory: Path
    zone: str
    store: StoreAddress

    def land(self, part: Range, only: str | None = None) -> list[Landed]:
        """Write the facts of a range, one file for each UTC date; `only` leaves out other dates."""
        import pyarrow as pa

        table = find_table(part.table)
        names = [each.name for each in table.landed_columns]
        ids = IdRange(part.first, part.last)
        batches = list(read_range(self.store, table, names, ids, table.landed_rows))
        if not batches:
            return []
        rows = pa.Table.from_batches(batches)
        return [
            self._write(part.table, name, each)
            for name, each in _split_by_date(part.table, rows)
            if only is None or name == only
        ]

    def _write(self, table: str, name: str, rows: pa.Table) -> Landed:
        import pyarrow.compute as pc

        times = [pc.min_max(rows[each]).as_py() for each in TIMES[table]]
        ids = pc.min_max(rows["id"]).as_py()
        path = f"facts/{table}/date={name}/{ids['min']}-{ids['max']}-{uuid4().hex[:8]}.parquet"
        size = write_parquet(self.directory / path, [rows])
        written = FactFile(
            name=path,
            date=name,
            rows=rows.num_rows,
            first=ids["min"],
            last=ids["max"],
            earliest=min(each["min"] for each in times if each["min"] is not None),
            latest=max(each["max"] for each in times if each["max"] is not None),
            bytes=size,
        )
        days = frozenset(touched_days(table, rows, self.zone))
        return Landed(table, written, times[0]["min"], days)


def land_in_tasks(spark: SparkSession, landing: Landing, parts: Sequence[Range]) -> list[Landed]:
    """Land ranges in tasks of Spark, one each."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                if landed := landing.land(parts[number]):
                    yield from _to_batches(landed)

    count = len(parts)
    rows = spark.range(0, count, 1, count).mapInArrow(task, "landed string").toArrow()
    return [Landed.from_json(each) for each in rows["landed"].to_pylist()]


def land_again(
    landing: Landing, facts: Mapping[str, FactTableState], damaged: set[str], tell: Tell
) -> dict[str, FactTableState]:
    """Replace damaged files by what the store has; raises ReportsDamaged if rows are gone."""
    repaired = {}
    for table, state in facts.items():
        files: list[FactFile] = []
        for each in state.files:
            if each.name in damaged or has_wrong_size(landing.directory, each):
                tell(Progress(Step.REPAIRING, table, each.rows, text=each.date))
                files += _land_file(landing, table, each)
            else:
                files.append(each)
        repaired[table] = replace(state, files=tuple(files))
    return repaired


def _land_file(landing: Landing, table: str, file: FactFile) -> list[FactFile]:
    landed = [
        each.file
        for begin in range(file.first, file.last + 1, RANGE_ROWS)
        for each in landing.land(
            Range(table, begin, min(begin + RANGE_ROWS - 1, file.last)), only=file.date
        )
    ]
    lost = file.rows - sum(each.rows for each in landed)
    if lost:
        rows = format_count(lost, "row")
        raise ReportsDamaged(
            f"{landing.directory / file.name} is missing or damaged, and the database no longer"
            f" has {rows} of it",
            hint="Restore the file from a backup. Without one, `bullpen report run --again`"
            " computes everything from what the database has.",
        )
    return landed


def _to_batches(landed: Sequence[Landed]) -> Iterator[pa.RecordBatch]:
    """A row for each. PyArrow would import pandas to make an array of Python's values."""
    import pyarrow as pa

    for each in landed:
        text = each.to_json().encode()
        ends = pa.py_buffer(struct.pack("=2i", 0, len(text)))
        column = pa.StringArray.from_buffers(1, ends, pa.py_buffer(text))
        yield pa.RecordBatch.from_arrays([column], ["landed"])


def _split_by_date(table: str, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each UTC date. Rows are nearly in the order of their times, so slices do."""
    import pyarrow as pa
    import pyarrow.compute as pc

    dates = utc_dates(rows[find_table(table).time]).combine_chunks()
    spans = pc.run_end_encode(dates)
    if len(spans.values) > MANY_SPANS:
        order = pc.sort_indices(dates)  # rows of one date keep their order
        rows, spans = rows.take(order), pc.run_end_encode(dates.take(order))
    parts: dict[date, list[pa.Table]] = defaultdict(list)
    begin = 0
    for each, end in zip(spans.values.to_pylist(), spans.run_ends.to_pylist(), strict=True):
        parts[each].append(rows.slice(begin, end - begin))
        begin = end
    for each in sorted(parts):
        yield each.isoformat(), pa.concat_tables(parts[each])
