"""latency: how long messages wait for a run, how long runs take, and how long deliveries take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bullpen.reports import Chart, ChartKind, Column, Facts, Report, Table, Type, Unit, View
from bullpen.reports import functions as F
from bullpen.reports.expressions import bucket, duration, percentile, percentiles, sorted_values

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

SHARES: Mapping[str, int] = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}

BUCKETS = "latency_buckets"

WAITING, RUNNING, DELIVERING = "waiting", "running", "delivering"


def latency(facts: Facts) -> DataFrame:
    """The percentiles of each stage, by hour and agent."""
    return _percentiles(_runs(facts), WAITING, RUNNING).unionByName(
        _percentiles(_deliveries(facts), DELIVERING)
    )


def latency_buckets(facts: Facts) -> DataFrame:
    """The number of durations in each bucket, by day, agent and stage."""
    return (
        _by_stage(_runs(facts), WAITING, RUNNING)
        .unionByName(_by_stage(_deliveries(facts), DELIVERING))
        .where(F.col("duration").isNotNull())
        .groupBy("day", "agent", "stage", bucket(F.col("duration")).alias("bucket"))
        .agg(F.count("*").alias("count"))
    )


def _runs(facts: Facts) -> DataFrame:
    return facts.attempts.select(
        "day",
        "hour",
        "agent",
        duration("available_at", "claimed_at").alias(WAITING),
        duration("started_at", "finished_at").alias(RUNNING),
    )


def _deliveries(facts: Facts) -> DataFrame:
    is_delivery = (F.col("type") == "response_delivered") & F.col("waited").isNotNull()
    waited = F.col("waited").alias(DELIVERING)
    return facts.events.where(is_delivery).select("day", "hour", "agent", waited)


def _percentiles(rows: DataFrame, *stages: str) -> DataFrame:
    """The percentiles of each stage, by hour and agent; the rows are read and sorted once."""
    sums = (F.sum(each).alias(f"{each}_total") for each in stages)
    values = (sorted_values(each).alias(each) for each in stages)
    return (
        rows.groupBy("day", "hour", "agent")
        .agg(*sums, *values)
        .select("day", "hour", "agent", F.explode(F.array(*map(_row_of, stages))).alias("row"))
        .select("day", "hour", "agent", "row.*")
        .where(F.col("count") > 0)
    )


def _row_of(stage: str) -> Expression:
    return F.struct(
        F.lit(stage).alias("stage"),
        F.size(stage).alias("count"),
        F.col(f"{stage}_total").alias("total"),
        F.get(stage, F.size(stage) - 1).alias("longest"),
        *(percentile(stage, share).alias(name) for name, share in SHARES.items()),
    )


def _by_stage(rows: DataFrame, *stages: str) -> DataFrame:
    """One row for each stage of a run or a delivery."""
    return rows.unpivot(["day", "agent"], list(stages), "stage", "duration")


DAY = Column("day", Type.DATE, "The day on which the run finished or the response was delivered.")
WEEK = Column("week", Type.DATE, "The first day of the week, a Monday.")
MONTH = Column("month", Type.DATE, "The first day of the month.")
WEEKDAY = Column(
    "weekday", Type.INTEGER, "The day of the week, from 1 (Monday) to 7.", Unit.WEEKDAY
)
HOUR = Column("hour", Type.INTEGER, "The hour of the day, from 0 to 23.")
AGENT = Column("agent", Type.TEXT, "The agent.")
STAGE = Column(
    "stage",
    Type.TEXT,
    "`waiting` from the time a message is due to its claim, `running` from the start of a run to"
    " its end, `delivering` from storing a response to its delivery.",
)
COUNT = Column("count", Type.INTEGER, "Runs or deliveries.", Unit.COUNT)
TOTAL = Column("total", Type.INTEGER, "The sum of the durations.", Unit.MILLISECONDS)
LONGEST = Column("longest", Type.INTEGER, "The longest duration.", Unit.MILLISECONDS)
MEAN = Column("mean", Type.NUMBER, "The mean duration.", Unit.MILLISECONDS)


def _percentile_columns(note: str = "") -> tuple[Column, ...]:
    return tuple(
        Column(
            name,
            Type.INTEGER,
            f"The duration that {share} % of the runs or deliveries do not exceed{note}.",
            Unit.MILLISECONDS,
        )
        for name, share in SHARES.items()
    )


EXACT = _percentile_columns()
MERGED = _percentile_columns(", at most 1.6 % off")


def _merged(name: str, title: str, chart: Chart, *columns: Column, table: str = BUCKETS) -> View:
    """Percentiles of a longer time than an hour, from the buckets of its days."""
    names = ", ".join(each.name for each in columns)
    sql = percentiles(table, "count", tuple(each.name for each in columns), SHARES)
    return View(
        name=name,
        title=title,
        sql=f"{sql} ORDER BY {names}",
        columns=(*columns, *MERGED),
        chart=chart,
    )


LATENCY = Report(
    name="latency",
    title="Latency",
    question="How long do messages wait, how long do runs take, and how long do deliveries take?",
    facts=("attempts", "events"),
    tables=(
        Table(
            name="latency",
            grain=("day", "hour", "agent", "stage"),
            columns=(DAY, HOUR, AGENT, STAGE, COUNT, TOTAL, LONGEST, *EXACT),
            transform=latency,
        ),
        Table(
            name=BUCKETS,
            grain=("day", "agent", "stage", "bucket"),
            columns=(
                DAY,
                AGENT,
                STAGE,
                Column(
                    "bucket",
                    Type.INTEGER,
                    "The number of a bucket of durations; it is at most 1/32 wider than its lower"
                    " bound. Counts by bucket can be summed over days; percentiles cannot.",
                ),
                Column("count", Type.INTEGER, "Runs or deliveries in the bucket.", Unit.COUNT),
            ),
            transform=latency_buckets,
        ),
    ),
    views=(
        _merged(
            "days",
            "Latency by day",
            Chart(kind=ChartKind.LINE, x="day", y=("p95",), series="stage"),
            DAY,
            STAGE,
        ),
        _merged(
            "agents",
            "Latency by agent",
            Chart(kind=ChartKind.BAR, x="agent", y=("p50", "p95"), series="stage"),
            AGENT,
            STAGE,
        ),
        _merged(
            "weeks",
            "Latency by week",
            Chart(kind=ChartKind.LINE, x="week", y=("p95",), series="stage"),
            WEEK,
            STAGE,
            table=f"(SELECT *, date_trunc('week', day)::DATE AS week FROM {BUCKETS})",  # noqa: S608
        ),
        _merged(
            "months",
            "Latency by month",
            Chart(kind=ChartKind.LINE, x="month", y=("p95",), series="stage"),
            MONTH,
            STAGE,
            table=f"(SELECT *, date_trunc('month', day)::DATE AS month FROM {BUCKETS})",  # noqa: S608
        ),
        _merged(
            "weekdays",
            "Latency by weekday",
            Chart(kind=ChartKind.BAR, x="weekday", y=("p50", "p95"), series="stage"),
            WEEKDAY,
            STAGE,
            table=f"(SELECT *, isodow(day) AS weekday FROM {BUCKETS})",  # noqa: S608
        ),
        View(
            name="heatmap",
            title="Mean waiting time by weekday and hour",
            sql="""
                SELECT isodow(day) AS weekday, hour, sum(count) AS count,
                       sum(total) / sum(count) AS mean, max(longest) AS longest
                FROM latency WHERE stage = 'waiting'
                GROUP BY weekday, hour ORDER BY weekday, hour
            """,
            columns=(WEEKDAY, HOUR, COUNT, MEAN, LONGEST),
            chart=Chart(kind=ChartKind.HEATMAP, x="hour", y=("weekday",), series="mean"),
        ),
        View(
            name="hours",
            title="Latency by hour and agent",
            sql=f"""
                SELECT day, hour, agent, stage, count, total / count AS mean, longest,
                       {", ".join(SHARES)}
                FROM latency ORDER BY day, hour, agent, stage
            """,  # noqa: S608 (names of columns)
            columns=(DAY, HOUR, AGENT, STAGE, COUNT, MEAN, LONGEST, *EXACT),
        ),
    ),
)
