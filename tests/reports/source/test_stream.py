"""A stream reads each row exactly once, beside writers, over restarts and over SIGKILL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import insert

from bullpen.core.errors import StoreReplaced
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.identity import store_id
from tests.reports.conftest import ClassArchives
from tests.reports.source.rows import BIG, full_row, store_table, write_rows
from tests.reports.source.writing import stored_ids, writers
from tests.stores import Stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from bullpen.reports.spark.source import StreamReader

REPO = Path(__file__).resolve().parents[3]

SCRIPT = """
import sys
from pathlib import Path

from bullpen.core.settings import Settings
from bullpen.reports.spark.session import open_session
from tests.reports.source.test_stream import start_stream

home, url, directory = sys.argv[1:]
settings = Settings(home=Path(home), database_url=url)
with open_session(settings, small=True) as spark:
    start_stream(spark, settings, Path(directory), batch_rows=5).awaitTermination()
"""


def start_stream(
    spark: SparkSession, settings: Settings, directory: Path, batch_rows: int = 100_000
) -> StreamingQuery:
    """Write the events that are available into Parquet, from the checkpoint on."""
    from bullpen.reports.spark.source import register

    register(spark)
    url = {"url": settings.database_url} if settings.database_url else {}
    return (
        spark.readStream.format("bullpen")
        .options(table="events", columns="id,type", home=str(settings.home), **url)
        .option("maxRowsPerBatch", batch_rows)
        .load()
        .writeStream.format("parquet")
        .option("path", str(directory / "events"))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


def written_ids(spark: SparkSession, directory: Path) -> list[int]:
    """The ids of all rows in the files that count."""
    return sorted(row.id for row in spark.read.parquet(str(directory / "events")).collect())


def event_rows(first: int, last: int) -> list[dict[str, object]]:
    """Rows with these ids."""
    return [full_row("events", n) for n in range(first, last + 1)]


@pytest.mark.long
def test_a_stream_reads_each_row_once_over_restarts_and_sigkill(
    spark: SparkSession, stores: Stores, tmp_path: Path, class_archives: ClassArchives
) -> None:
    settings = stores.settings("sqlite")
    class_archives.lend(settings.home)
    with stores.opened(settings) as store:
        write_rows(store, "events", event_rows(1, 60))
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, settings.home, "", tmp_path],
        cwd=REPO,
        start_new_session=True,
    ) as process:
        until = time.monotonic() + 240
        # The third batch is under way or done.
        while not (tmp_path / "checkpoint/commits/1").exists() and process.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    assert not (tmp_path / "checkpoint/commits/11").exists()
    start_stream(spark, settings, tmp_path).awaitTermination()
    assert written_ids(spark, tmp_path) == list(range(1, 61))
    with stores.opened(settings) as store:
        write_rows(store, "events", [*event_rows(61, 63), full_row("events", BIG)])
    start_stream(spark, settings, tmp_path).awaitTermination()
    assert written_ids(spark, tmp_path) == [*range(1, 64), BIG]


def open_reader(settings: Settings, **options: str) -> StreamReader:
    """A reader in this process."""
    from bullpen.reports.spark.source import Query, StreamReader

    url = {"url": settings.database_url} if settings.database_url else {}
    return StreamReader(
        Query.parse({"table": "events", "home": str(settings.home), **url, **options})
    )


def test_micro_batches_have_at_most_so_many_rows_and_reach_the_target(store: Store) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

    reader = open_reader(store.settings, maxRowsPerBatch="4", rowsPerPartition="3")
    start = reader.initialOffset()
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(4)
    assert reader.latestOffset(start, limit) == start
    write_rows(store, "events", [*event_rows(10, 14), *event_rows(100, 102)])
    reader.prepareForTriggerAvailableNow()
    write_rows(store, "events", event_rows(103, 110))
    offset, batches = start, []
    while (end := reader.latestOffset(offset, limit)) != offset:
        parts = [each.value for each in reader.partitions(offset, end)]
        batches.append([(each.first, each.last) for each in parts])
        offset = end
    assert batches == [[(10, 12), (13, 13)], [(14, 16)], [(100, 102)]]
    with store.read() as tx:
        assert offset == {"id": 102, "store": store_id(tx)}
    assert open_reader(store.settings).latestOffset(start, ReadAllAvailable())["id"] == 110


def test_beside_writers_a_stream_loses_no_row_and_reads_none_twice(store: Store) -> None:
    """Its batches in the order of Spark, and a new reader from each checkpoint."""
    offset = open_reader(store.settings).initialOffset()
    found: list[int] = []
    batches = 0

    def read_batch() -> bool:
        """Read the next micro-batch, if there is one."""
        nonlocal offset, batches
        reader = open_reader(store.settings, rowsPerPartition="100")
        limit = reader.getDefaultReadLimit()
        end = json.loads(json.dumps(reader.latestOffset(offset, limit)))
        if end == offset:
            return False
        for part in reader.partitions(offset, end):
            found.extend(each for batch in reader.read(part) for each in batch["id"].to_pylist())
        offset, batches = end, batches + 1
        return True

    with writers(store) as writing:
        while writing():
            read_batch()
    while read_batch():
        pass
    assert sorted(found) == stored_ids(store)
    assert batches > 0


@pytest.mark.postgres
def test_an_offset_never_passes_a_row_that_is_still_to_commit(stores: Stores) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    table, row = store_table("events"), full_row("events", 1)
    del row["id"]
    with stores.opened(stores.settings("postgresql")) as store:
        reader = open_reader(store.settings)
        start = reader.initialOffset()
        with store.engine.connect() as late:
            late.execute(insert(table).values(row))
            with store.engine.begin() as early:
                early.execute(insert(table).values(row))
            # It waits for a while, and then there is nothing new.
            assert reader.latestOffset(start, ReadAllAvailable()) == start
            late.commit()
        end = reader.latestOffset(start, ReadAllAvailable())
        assert end["id"] == 2
        (part,) = reader.partitions(start, end)
        store.close()
        rows = [each for batch in reader.read(part) for each in batch["id"].to_pylist()]
    assert sorted(rows) == [1, 2]


def test_a_checkpoint_of_another_store_is_refused(stores: Stores) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    settings = stores.settings("sqlite")
    with stores.opened(settings) as store:
        write_rows(store, "events", event_rows(1, 3))
    reader = open_reader(settings)
    foreign = {**reader.initialOffset(), "store": "of-another-store"}
    with pytest.raises(StoreReplaced) as raised:
        reader.latestOffset(foreign, ReadAllAvailable())
    assert "new checkpoint" in raised.value.__notes__[0]
    gone = {**reader.initialOffset(), "id": 9}
    assert reader.latestOffset(gone, ReadAllAvailable()) == gone
