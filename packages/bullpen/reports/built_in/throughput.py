"""throughput: messages in, answered and dead, and how busy the agents were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullpen.reports import Chart, ChartKind, Column, Facts, Report, Table, Type, Unit, View
from bullpen.reports import functions as F
from bullpen.reports.expressions import local_day, local_time

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

QUARTER = 15 * 60 * 1000
"""Runs are split at the quarters of UTC hours: in every time zone, an hour begins at one."""

COUNTS = ("messages_in", "messages_done", "messages_dead", "runs", "runs_failed")


def throughput(facts: Facts) -> DataFrame:
    """The messages that came in, were answered or became dead letters, and the finished runs."""
    grain = ("day", "hour", "agent", "team_id", "channel")
    is_completed = F.col("outcome") == "completed"
    runs = facts.attempts.select(
        *grain,
        F.lit(0).alias("messages_in"),
        F.when(is_completed, F.col("messages")).otherwise(0).alias("messages_done"),
        F.lit(0).alias("messages_dead"),
        F.lit(1).alias("runs"),
        _one_if(F.col("outcome").isin("failed", "crashed")).alias("runs_failed"),
    )
    messages = facts.events.where(F.col("type").isin("message_enqueued", "message_dead")).select(
        *grain,
        _one_if(F.col("type") == "message_enqueued").alias("messages_in"),
        F.lit(0).alias("messages_done"),
        _one_if(F.col("type") == "message_dead").alias("messages_dead"),
        F.lit(0).alias("runs"),
        F.lit(0).alias("runs_failed"),
    )
    return (
        runs.unionByName(messages)
        .groupBy(*grain)
        .agg(*(F.sum(each).alias(each) for each in COUNTS))
    )


def concurrency(facts: Facts) -> DataFrame:
    """The time that each agent was busy, by the local hours that its runs overlap."""
    busy = (
        _quarters(facts)
        .groupBy("quarter", "agent")
        .agg(F.sum(F.col("until") - F.col("since")).alias("busy"))
        .select(*_local_hour(facts.zone), "agent", "busy")
        .groupBy("day", "hour", "agent")
        .agg(F.sum("busy").alias("busy"))
    )
    midnight = F.col("day").cast("timestamp")
    hour = midnight + F.make_interval(hours="hour")
    next_hour = hour + F.make_interval(hours=F.lit(1))
    next_midnight = midnight + F.make_interval(days=F.lit(1))
    return busy.select(
        "day",
        "hour",
        "agent",
        "busy",
        _milliseconds_between(hour, next_hour, facts.zone).alias("hour_length"),
        _milliseconds_between(midnight, next_midnight, facts.zone).alias("day_length"),
    )


def peaks(facts: Facts) -> DataFrame:
    """The highest number of runs at the same time, by local hour."""
    start, end = F.col("since") * 2 + 1, F.col("until") * 2
    # One number is sorted faster than two. At the same time, an end is before a start.
    points = _quarters(facts).select("quarter", F.explode(F.array(start, end)).alias("point"))
    change = F.when(F.col("point") % 2 == 1, 1).otherwise(-1)
    so_far = (
        F.Window.partitionBy("quarter")
        .orderBy("point")
        .rowsBetween(F.Window.unboundedPreceding, F.Window.currentRow)
    )
    return (
        points.select("quarter", F.sum(change).over(so_far).alias("runs"))
        .groupBy("quarter")
        .agg(F.max("runs").alias("highest"))
        .select(*_local_hour(facts.zone), "highest")
        .groupBy("day", "hour")
        .agg(F.max("highest").alias("highest"))
    )


def _quarters(facts: Facts) -> DataFrame:
    """The runs, one row for each quarter of an hour that they overlap.

    Runs without a duration are left out. A run has none if the clock was set back during it.
    """
    first = F.expr(f"claimed_at div {QUARTER}")
    last = F.expr(f"(finished_at - 1) div {QUARTER}")
    return (
        facts.attempts.where(F.col("finished_at") > F.col("claimed_at"))
        .select(
            "agent",
            "claimed_at",
            "finished_at",
            F.explode(F.sequence(first, last)).alias("number"),
        )
        .select("agent", "claimed_at", "finished_at", (F.col("number") * QUARTER).alias("quarter"))
        .select(
            "agent",
            "quarter",
            F.greatest("claimed_at", "quarter").alias("since"),
            F.least("finished_at", F.col("quarter") + QUARTER).alias("until"),
        )
    )


def _local_hour(zone: str) -> tuple[Expression, Expression]:
    """The local day and hour of `quarter`."""
    return (
        local_day("quarter", zone).alias("day"),
        F.hour(local_time("quarter", zone)).alias("hour"),
    )


def _milliseconds_between(begin: Expression, end: Expression, zone: str) -> Expression:
    """The duration between two local times, on a day of summer time too."""
    first, last = (F.unix_millis(F.to_utc_timestamp(each, zone)) for each in (begin, end))
    return last - first


def _one_if(condition: Expression) -> Expression:
    return F.when(condition, 1).otherwise(0)


DAY = Column("day", Type.DATE, "The day.")
HOUR = Column("hour", Type.INTEGER, "The hour of the day, from 0 to 23.")
WEEKDAY = Column(
    "weekday", Type.INTEGER, "The day of the week, from 1 (Monday) to 7.", Unit.WEEKDAY
)
AGENT = Column("agent", Type.TEXT, "The agent.")
TEAM = Column("team_id", Type.TEXT, "The team; NULL without a team.")
CHANNEL = Column("channel", Type.TEXT, "The channel or account.")
IN = Column("messages_in", Type.INTEGER, "Messages that were enqueued.", Unit.COUNT)
DONE = Column("messages_done", Type.INTEGER, "Messages that runs completed.", Unit.COUNT)
DEAD = Column("messages_dead", Type.INTEGER, "Messages that became dead letters.", Unit.COUNT)
RUNS = Column("runs", Type.INTEGER, "Runs that finished, whatever ended them.", Unit.COUNT)
FAILED = Column("runs_failed", Type.INTEGER, "Runs that failed or crashed.", Unit.COUNT)
BUSY = Column(
    "busy",
    Type.INTEGER,
    "The time of runs, from claim to end, on that day or in that hour.",
    Unit.MILLISECONDS,
)
UTILISATION = Column(
    "utilisation", Type.NUMBER, "The share of the time in which it had a run.", Unit.SHARE
)
HIGHEST = Column(
    "highest", Type.INTEGER, "The highest number of runs at the same time.", Unit.COUNT
)

SUMS = ", ".join(f"sum({each}) AS {each}" for each in COUNTS)


def _totals(name: str, title: str, column: Column, chart: Chart) -> View:
    by = column.name
    return View(
        name=name,
        title=title,
        sql=f"SELECT {by}, {SUMS} FROM throughput GROUP BY {by} ORDER BY {by}",  # noqa: S608
        columns=(column, IN, DONE, DEAD, RUNS, FAILED),
        chart=chart,
    )


def _bars(by: str) -> Chart:
    return Chart(kind=ChartKind.BAR, x=by, y=("messages_in", "messages_done", "messages_dead"))


THROUGHPUT = Report(
    name="throughput",
    title="Throughput",
    question="How many messages come in and are answered, and how busy are the agents?",
    facts=("attempts", "events"),
    tables=(
        Table(
            name="throughput",
            grain=("day", "hour", "agent", "team_id", "channel"),
            columns=(
                Column("day", Type.DATE, "The day of the event, or of the end of the run."),
                HOUR,
                AGENT,
                TEAM,
                CHANNEL,
                IN,
                DONE,
                DEAD,
                RUNS,
                FAILED,
            ),
            transform=throughput,
        ),
        Table(
            name="concurrency",
            grain=("day", "hour", "agent"),
            columns=(
                Column("day", Type.DATE, "The day. A run counts on each day that it overlaps."),
                HOUR,
                AGENT,
                BUSY,
                Column(
                    "hour_length",
                    Type.INTEGER,
                    "The length of the hour: 7200000 where summer time ends.",
                    Unit.MILLISECONDS,
                ),
                Column(
                    "day_length",
                    Type.INTEGER,
                    "The length of the day, from 23 to 25 hours.",
                    Unit.MILLISECONDS,
                ),
            ),
            transform=concurrency,
        ),
        Table(
            name="peaks",
            grain=("day", "hour"),
            columns=(DAY, HOUR, HIGHEST),
            transform=peaks,
        ),
    ),
    views=(
        _totals(
            "days",
            "Messages and runs by day",
            DAY,
            Chart(kind=ChartKind.LINE, x="day", y=("messages_in", "messages_done")),
        ),
        _totals("agents", "Messages and runs by agent", AGENT, _bars("agent")),
        _totals("teams", "Messages and runs by team", TEAM, _bars("team_id")),
        _totals("channels", "Messages and runs by channel", CHANNEL, _bars("channel")),
        View(
            name="hours",
            title="Messages and runs by weekday and hour",
            sql=f"""
                SELECT isodow(day) AS weekday, hour, {SUMS}
                FROM throughput GROUP BY weekday, hour ORDER BY weekday, hour
            """,  # noqa: S608 (names of columns)
            columns=(WEEKDAY, HOUR, IN, DONE, DEAD, RUNS, FAILED),
            chart=Chart(kind=ChartKind.HEATMAP, x="hour", y=("weekday",), series="messages_in"),
        ),
        View(
            name="utilisation",
            title="Utilisation by day and agent",
            sql="""
                SELECT day, agent, sum(busy) AS busy, sum(busy) / max(day_length) AS utilisation
                FROM concurrency GROUP BY day, agent ORDER BY day, agent
            """,
            columns=(DAY, AGENT, BUSY, UTILISATION),
            chart=Chart(kind=ChartKind.LINE, x="day", y=("utilisation",), series="agent"),
        ),
        View(
            name="busy",
            title="Busy time by hour",
            sql="""
                SELECT day, hour, sum(busy) AS busy,
                       sum(busy) / max(hour_length) AS concurrency, max(highest) AS highest
                FROM concurrency LEFT JOIN peaks USING (day, hour)
                GROUP BY day, hour ORDER BY day, hour
            """,
            columns=(
                DAY,
                HOUR,
                BUSY,
                Column("concurrency", Type.NUMBER, "The average number of runs at the same time."),
                Column(
                    "highest",
                    Type.INTEGER,
                    "The highest number of runs at the same time, of all agents.",
                    Unit.COUNT,
                ),
            ),
            chart=Chart(kind=ChartKind.HEATMAP, x="hour", y=("day",), series="concurrency"),
        ),
    ),
    filters=("agent", "team", "channel"),
)
