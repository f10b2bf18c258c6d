"""offhours: what agents do at night and on weekends, and how much of it goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullpen.reports import Chart, ChartKind, Column, Facts, Report, Table, Type, Unit, View
from bullpen.reports import functions as F
from bullpen.reports.expressions import micro_dollars

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

FIRST_HOUR, LAST_HOUR = 8, 17
"""Working hours: from 8:00 to 17:59, Monday to Friday."""


def offhours(facts: Facts) -> DataFrame:
    """The runs and dead letters of each day, by the time of day."""
    grain = ("day", "period", "agent")
    runs = facts.attempts.select(
        "day",
        _period().alias("period"),
        "agent",
        F.lit(1).alias("runs"),
        F.col("outcome").isin("failed", "crashed").cast("int").alias("runs_failed"),
        F.lit(0).alias("messages_dead"),
        micro_dollars("cost").alias("cost_micros"),
    )
    dead = facts.events.where(F.col("type") == "message_dead").select(
        "day",
        _period().alias("period"),
        "agent",
        F.lit(0).alias("runs"),
        F.lit(0).alias("runs_failed"),
        F.lit(1).alias("messages_dead"),
        F.lit(0).cast("bigint").alias("cost_micros"),
    )
    return (
        runs.unionByName(dead)
        .groupBy(*grain)
        .agg(
            F.sum("runs").alias("runs"),
            F.sum("runs_failed").alias("runs_failed"),
            F.sum("messages_dead").alias("messages_dead"),
            F.sum("cost_micros").alias("cost_micros"),
        )
    )


def _period() -> Expression:
    is_weekend = F.weekday("day") >= 5
    is_working_hour = F.col("hour").between(FIRST_HOUR, LAST_HOUR)
    return F.when(is_weekend, "weekend").when(is_working_hour, "work").otherwise("night")


DAY = Column("day", Type.DATE, "The day on which the run finished or the message died.")
PERIOD = Column("period", Type.TEXT, "`work`, `night` or `weekend`.")
AGENT = Column("agent", Type.TEXT, "The agent.")
RUNS = Column("runs", Type.INTEGER, "Runs that finished.", Unit.COUNT)
FAILED = Column("runs_failed", Type.INTEGER, "Runs that failed or crashed.", Unit.COUNT)
DEAD = Column("messages_dead", Type.INTEGER, "Messages that became dead letters.", Unit.COUNT)
COST_MICROS = Column(
    "cost_micros", Type.INTEGER, "The cost in millionths of a dollar.", Unit.MICRO_DOLLARS
)
COST = Column("cost", Type.NUMBER, "The cost.", Unit.DOLLARS)
FAILED_SHARE = Column("failed_share", Type.NUMBER, "The share of failed runs.", Unit.SHARE)

SHOWN = (RUNS, FAILED, FAILED_SHARE, DEAD, COST)

OFFHOURS = Report(
    name="offhours",
    title="Outside working hours",
    question="What do agents do at night and on weekends, and how much of it goes wrong?",
    facts=("attempts", "events"),
    tables=(
        Table(
            name="offhours",
            grain=("day", "period", "agent"),
            columns=(DAY, PERIOD, AGENT, RUNS, FAILED, DEAD, COST_MICROS),
            transform=offhours,
        ),
    ),
    views=(
        View(
            name="periods",
            title="Runs by time of day",
            sql="""
                SELECT period, sum(runs) AS runs, sum(runs_failed) AS runs_failed,
                       sum(runs_failed) / nullif(sum(runs), 0) AS failed_share,
                       sum(messages_dead) AS messages_dead, sum(cost_micros) / 1e6 AS cost
                FROM offhours GROUP BY period ORDER BY period
            """,
            columns=(PERIOD, *SHOWN),
            chart=Chart(kind=ChartKind.BAR, x="period", y=("failed_share",)),
        ),
        View(
            name="agents",
            title="Runs by agent and time of day",
            sql="""
                SELECT agent, period, sum(runs) AS runs, sum(runs_failed) AS runs_failed,
                       sum(runs_failed) / nullif(sum(runs), 0) AS failed_share,
                       sum(messages_dead) AS messages_dead, sum(cost_micros) / 1e6 AS cost
                FROM offhours GROUP BY agent, period ORDER BY agent, period
            """,
            columns=(AGENT, PERIOD, *SHOWN),
            chart=Chart(kind=ChartKind.STACKED, x="agent", y=("runs",), series="period"),
        ),
    ),
)
