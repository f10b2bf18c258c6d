"""BullpenDataSource: the store as a data source of Spark, in batches and as a stream.

    from bullpen.reports.spark.source import register

    register(spark)
    spark.read.format("bullpen").option("table", "attempts").load()

Rows come as Arrow batches. Each partition is a range of ids, which a task reads from the database.
Only the columns and rows that the options ask for are read.

There is no `pushFilters`: in Spark 4.3, a DataFrame keeps the filters of its last query, so that
after `runs.where("id < 3").count()` also `runs.count()` counts three rows. The option `where` has
no such effect.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from bullpen.core.errors import BullpenError, InputError, StoreBusy, StoreReplaced
from bullpen.reports.facts.read import RANGE_ROWS, IdRange, StoreAddress, read_range
from bullpen.reports.facts.tables import FactTable, find_table
from bullpen.reports.schema import Schema, Type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from bullpen.core.settings import Settings
    from bullpen.core.store.base import Store

MAX_ROWS_PER_BATCH = 500_000
"""Of a stream."""
TARGET_SECONDS = 30.0
"""How long a stream that ends waits for transactions that are writing when it begins."""

Json = dict[str, object]

TYPES: Mapping[Type, DataType] = {
    Type.TEXT: StringType(),
    Type.INTEGER: LongType(),
    Type.NUMBER: DoubleType(),
    Type.BOOLEAN: BooleanType(),
    Type.DATE: DateType(),
}


def register(spark: SparkSession) -> None:
    """Let this session read the store by `spark.read.format("bullpen")`."""
    spark.dataSource.register(BullpenDataSource)


def spark_schema(columns: Schema) -> StructType:
    """The columns as Spark's schema."""
    return StructType([StructField(each.name, TYPES[each.type]) for each in columns])


class BullpenDataSource(DataSource):
    """The facts in a store of Bullpen.

    | option | meaning |
    |---|---|
    | `table` | `attempts`, `events`, `messages` or `responses` |
    | `columns` | the columns to read, such as `id,agent,cost`; by default all |
    | `where` | a condition in the SQL of the database, such as `outcome = 'failed'` |
    | `home` | the home of Bullpen; by default that of the environment |
    | `url` | the database; by default that of the home's settings |
    | `rowsPerPartition` | the largest range that one task reads; by default 250 000 ids |
    | `numPartitions` | the number of tasks, instead |
    | `maxRowsPerBatch` | the most rows in a micro-batch of a stream; by default 500 000 |
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "bullpen"

    def schema(self) -> StructType:
        """The columns that were asked for, or all."""
        with _hints():
            # The store is not needed yet, and a process of Spark's own answers this.
            table = find_table(self.options.get("table", ""))
            return spark_schema(_asked_columns(table, self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of all rows that are committed now."""
        with _hints():
            return BatchReader(Query.parse(self.options, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A reader of rows as they are committed."""
        with _hints():
            return StreamReader(Query.parse(self.options, schema))


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to read, and from where.

    Tasks get it, with the address of the store. Its text does not show the password.
    """

    address: StoreAddress
    home: Path
    table: FactTable
    columns: tuple[str, ...]
    where: str = ""
    partition_rows: int = RANGE_ROWS
    partitions: int | None = None
    batch_rows: int = MAX_ROWS_PER_BATCH

    @classmethod
    def parse(cls, options: Mapping[str, str], schema: StructType | None = None) -> Query:
        """The query of these options, with the columns of the schema if there is one."""
        settings = _load_settings(options, os.environ)
        table = find_table(options.get("table", ""))
        columns = _asked_columns(table, options)
        if schema is not None:
            columns = _check_types(table, schema)
        partitions = options.get("numPartitions")
        return cls(
            address=StoreAddress(settings.url),
            home=settings.home,
            table=table,
            columns=tuple(each.name for each in columns),
            where=options.get("where", ""),
            partition_rows=_positive(options, "rowsPerPartition", RANGE_ROWS),
            partitions=None if partitions is None else _positive(options, "numPartitions", 1),
            batch_rows=_positive(options, "maxRowsPerBatch", MAX_ROWS_PER_BATCH),
        )

    def open_store(self) -> Store:
        """The store, after the check of its schema. Only the driver opens it, not the tasks."""
        from bullpen.core.settings import Settings
        from bullpen.core.store.open import open_store

        return open_store(Settings(home=self.home, database_url=self.address.url))

    def read(self, ids: IdRange) -> Iterator[pa.RecordBatch]:
        """The rows of a range."""
        with _hints():
            yield from read_range(self.address, self.table, self.columns, ids, self.where)


class BatchReader(DataSourceReader):
    """Reads the rows that are visible when the query is planned."""

    def __init__(self, query: Query) -> None:
        self.query = query

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of ids."""
        from bullpen.reports.facts.position import cut_ranges, last_id, next_id

        query = self.query
        with _hints(), closing(query.open_store()) as store:
            last = last_id(store, query.table)
            rows = query.partition_rows
            if query.partitions is not None:
                first = next_id(store, query.table, 0) or 0
                rows = -(-(last - first + 1) // query.partitions)
            return [InputPartition(each) for each in cut_ranges(store, query.table, 0, last, rows)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a range; Spark makes a partition without a range if there is none."""
        if partition.value is not None:
            yield from self.query.read(partition.value)


@dataclass(frozen=True, slots=True)
class Offset:
    """A position in a stream, which the checkpoint keeps as JSON."""

    last: int
    """The last id that was read."""
    store: str
    """The identity of the store."""

    @classmethod
    def parse(cls, values: Mapping[str, object]) -> Offset:
        """The offset in the JSON of a checkpoint."""
        match values:
            case {"id": int(last), "store": str(store)}:
                return cls(last, store)
        raise InputError(
            f"the checkpoint has no offset of Bullpen: {values}", hint="Use a new checkpoint."
        )

    def to_json(self) -> Json:
        """The offset as JSON."""
        return {"id": self.last, "store": self.store}


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads rows in the order of their ids. An offset has the last id that was read.

    It never passes a row that is still to commit, so that a stream with a checkpoint reads each
    row exactly once, also over restarts.
    """

    def __init__(self, query: Query) -> None:
        self.query = query
        self._target: int | None = None
        """Where a stream ends that reads what is available."""

    def initialOffset(self) -> Json:  # noqa: N802
        """Before the first row."""
        with _hints(), closing(self.query.open_store()) as store:
            return Offset(0, _identity(store)).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The size of a micro-batch."""
        return ReadMaxRows(self.query.batch_rows)

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:  # noqa: N802
        """The last id of the next micro-batch; that of the start if there is nothing new."""
        from bullpen.reports.facts.position import find_committed, next_id

        begin = Offset.parse(start)
        with _hints(), closing(self.query.open_store()) as store:
            if begin.store != _identity(store):
                raise StoreReplaced(
                    "the checkpoint of the stream is about another store",
                    hint="Start the stream with a new checkpoint and a new directory.",
                )
            last = self._target
            if last is None:
                try:
                    last = find_committed(store, self.query.table)
                except StoreBusy:  # asked again at the next trigger
                    return start
            if isinstance(limit, ReadMaxRows) and last > begin.last:
                first = next_id(store, self.query.table, begin.last + 1) or last
                last = min(last, first + limit.max_rows - 1)
        # Retention may have deleted the newest rows.
        return replace(begin, last=max(begin.last, last)).to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember where the stream ends."""
        from bullpen.reports.facts.position import find_committed

        with _hints(), closing(self.query.open_store()) as store:
            self._target = find_committed(store, self.query.table, TARGET_SECONDS)

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Ranges of the ids of a micro-batch."""
        from bullpen.reports.facts.position import cut_ranges

        query, first, last = self.query, Offset.parse(start).last + 1, Offset.parse(end).last
        with _hints(), closing(query.open_store()) as store:
            ranges = cut_ranges(store, query.table, first, last, query.partition_rows)
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a range."""
        return self.query.read(partition.value)


def _identity(store: Store) -> str:
    from bullpen.core.store.identity import store_id

    with store.read() as tx:
        return store_id(tx)


def _load_settings(options: Mapping[str, str], environ: Mapping[str, str]) -> Settings:
    """The settings of the environment, or of the home and with the database of the options."""
    from bullpen.core.settings.parse import load_lenient
    from bullpen.core.store.open import parse_database_url

    changed = dict(environ)
    if home := options.get("home"):
        # Otherwise the environment could name the database of another home.
        changed.pop("BULLPEN_DATABASE_URL", None)
        changed["BULLPEN_HOME"] = home
    if url := options.get("url"):
        changed["BULLPEN_DATABASE_URL"] = url
    settings, _ = load_lenient(changed)
    parse_database_url(settings.url)
    return settings


def _asked_columns(table: FactTable, options: Mapping[str, str]) -> Schema:
    """The columns that the option `columns` names; all without it."""
    names = [each.strip() for each in options.get("columns", "").split(",") if each.strip()]
    return table.select_columns(names) if names else table.columns


def _check_types(table: FactTable, schema: StructType) -> Schema:
    """The columns of a schema; refuses types that they do not have."""
    columns = table.select_columns(schema.fieldNames())
    for field, expected in zip(schema.fields, spark_schema(columns).fields, strict=True):
        if field.dataType != expected.dataType or not field.nullable:
            raise InputError(
                f"the column {field.name} of {table.name} is not {field.simpleString()}",
                hint=f"Its type is {expected.dataType.simpleString()}, and it may be NULL.",
            )
    return columns


def _positive(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"the option {name} is not a positive number: {text!r}")
    return int(text)


@contextmanager
def _hints() -> Iterator[None]:
    """Add the hint to an error: Spark shows an error of Python by its traceback."""
    try:
        yield
    except BullpenError as error:
        error.add_note(error.hint)
        raise
