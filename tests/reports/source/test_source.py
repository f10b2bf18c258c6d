"""Spark reads the store through the data source `bullpen`, in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.reports.facts.tables import FACT_TABLES
from tests.reports.source.rows import BIG, bare_row, expected_fact, full_row, write_rows
from tests.stores import Stores

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

PASSWORD = "n0b0dy-may-5ee-this"


@pytest.fixture
def spark(spark: SparkSession) -> SparkSession:
    """The session, which knows the data source."""
    from bullpen.reports.spark.source import register

    register(spark)
    return spark


def source(spark: SparkSession, settings: Settings, table: str) -> DataFrameReader:
    """The data source with the options of a store."""
    reader = spark.read.format("bullpen").option("table", table)
    url = {"url": settings.database_url} if settings.database_url else {}
    return reader.options(home=str(settings.home), **url)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows, by id."""
    found = [each.asDict() for each in frame.collect()]
    return sorted(found, key=lambda row: int(row["id"]))


def test_spark_has_every_row_and_value_of_every_table(spark: SparkSession, store: Store) -> None:
    for table in FACT_TABLES.values():
        rows = []
        for number, stored in enumerate(table.stored_in):
            made = [bare_row(stored, 1 + number), full_row(stored, 5 + number)]
            made.append({**full_row(stored, 7 + number), "id": BIG + number})
            write_rows(store, stored, made)
            rows += [expected_fact(table, each, archived=number > 0) for each in made]
        rows.sort(key=lambda row: int(row["id"]))
        reader = source(spark, store.settings, table.name).option("rowsPerPartition", 3)
        frame = reader.load()
        assert rows_of(frame) == rows, table.name
        assert frame.rdd.getNumPartitions() == 3, table.name


def test_only_the_columns_and_rows_asked_for_are_read_from_the_database(
    spark: SparkSession, store: Store
) -> None:
    rows = [{**full_row("events", n), "type": "broken", "data": "{not json"} for n in range(1, 5)]
    rows[2] |= {"type": "message_enqueued", "data": '{"channel": "slack"}'}
    write_rows(store, "events", rows)
    # Another row would end in an error.
    where = "type = 'message_enqueued' AND id IN (1, 2, 3)"
    found = source(spark, store.settings, "events").option("where", where).load()
    assert [each.channel for each in found.collect()] == ["slack"]
    # So would another column.
    reader = source(spark, store.settings, "events")
    assert reader.schema("id bigint, type string").load().count() == 4
    pruned = source(spark, store.settings, "events").option("columns", "type, id").load()
    assert pruned.columns == ["type", "id"]
    assert pruned.count() == 4


def test_a_frame_that_is_used_again_has_all_rows(spark: SparkSession, store: Store) -> None:
    """A reader that takes filters from Spark 4.3 would keep those of the last query."""
    write_rows(store, "attempts", [full_row("attempts", n) for n in range(1, 8)])
    runs = source(spark, store.settings, "attempts").option("columns", "id,cost").load()
    for allowed in ("true", "false"):
        spark.conf.set("spark.sql.python.filterPushdown.enabled", allowed)
        assert runs.where("id < 3").count() == 2
        assert runs.where("id < 3").union(runs.where("id >= 3")).count() == 7
        assert runs.count() == 7


def test_an_empty_table_has_its_columns_and_no_rows(spark: SparkSession, store: Store) -> None:
    frame = source(spark, store.settings, "attempts").option("numPartitions", "4").load()
    assert frame.collect() == []
    write_rows(store, "attempts", [full_row("attempts", n) for n in range(11, 20)])
    frame = source(spark, store.settings, "attempts").option("numPartitions", "4").load()
    assert frame.rdd.getNumPartitions() == 3
    assert frame.count() == 9


def test_what_is_wrong_with_the_store_or_an_option_is_said_with_a_hint(
    spark: SparkSession, stores: Stores
) -> None:
    from pyspark.errors import PySparkException

    settings = stores.settings("sqlite")
    with stores.opened(settings) as store:
        write_rows(store, "attempts", [full_row("attempts", 1)])
    absent = Settings(home=stores.directory / "absent")
    newer = stores.settings("sqlite")
    with stores.opened(newer) as store, store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    damaged = stores.settings("sqlite")
    (damaged.home / "bullpen.db").write_bytes(b"no database" * 1000)
    directory = stores.settings("sqlite")
    (directory.home / "bullpen.db").unlink()
    (directory.home / "bullpen.db").mkdir()

    def reader(settings: Settings = settings, table: str = "attempts") -> DataFrameReader:
        return source(spark, settings, table)

    cases = {
        "fact table 'attempt' does not exist. Did you mean 'attempts'?": reader(table="attempt"),
        "Use one of: attempts, events, messages, responses.": reader(table=""),
        "column 'agents' does not exist. Did you mean 'agent'?": reader().schema("agents string"),
        "the column cost of attempts is not cost:string": reader().schema("cost string"),
        "Its type is double": reader().schema("cost float"),
        "the option numPartitions is not a positive number": reader().option("numPartitions", "0"),
        "the database does not exist yet": reader(absent),
        "Install the version of Bullpen that made it": reader(newer),
        "the file is not a database": reader(damaged),
        "the database cannot be opened": reader(directory),
        "unsupported database 'mysql'": reader().option("url", f"mysql://a:{PASSWORD}@host/db"),
        "cannot read the table attempts": reader().option("where", "nobody = 1"),
        "database_url is not a URL": reader().option("url", f"a:{PASSWORD}@nowhere"),
    }
    problems = []
    for text, each in cases.items():
        try:
            each.load().collect()
            problems.append(f"{text}: no error")
        except PySparkException as error:
            if text not in str(error):
                problems.append(f"{text} is not in {str(error)[-300:]}")
            if PASSWORD in str(error):
                problems.append(f"{text}: shows the password")
    assert not problems


@pytest.mark.postgres
def test_no_plan_and_no_error_shows_the_password(spark: SparkSession, stores: Stores) -> None:
    from pyspark.errors import PySparkException

    settings = stores.settings("postgresql")
    before, _, after = settings.database_url.partition("@")
    secret = f"{before}:{PASSWORD}@{after}"
    with stores.opened(settings) as store:
        write_rows(store, "attempts", [full_row("attempts", 1)])
        shown: list[object] = []
        frame = (
            spark.read.format("bullpen").option("table", "attempts").option("url", secret).load()
        )
        assert frame.count() == 1
        execution = frame.where("cost > 0")._jdf.queryExecution()
        assert spark._jvm is not None
        modes = ("simple", "extended", "codegen", "cost", "formatted")
        for mode in modes:
            explain = spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString(mode)
            shown.append(execution.explainString(explain))
        shown += [execution.toString(), frame, frame._jdf.toString(), frame.schema]
        with store.engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE attempts RENAME TO gone")
        with pytest.raises(PySparkException) as raised:
            frame.collect()
        shown += [raised.value, repr(raised.value), raised.value.__cause__]
        unknown = secret.replace(after, "127.0.0.1:1/company")
        with pytest.raises(PySparkException) as raised:
            spark.read.format("bullpen").options(table="attempts", url=unknown).load().collect()
        shown += [raised.value, repr(raised.value)]
    text = "\n".join(map(str, shown))
    assert "cannot connect to PostgreSQL" in text
    assert PASSWORD not in text
