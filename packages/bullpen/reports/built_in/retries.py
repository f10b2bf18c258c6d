"""retries: how many tries an answer takes, how runs fail, and what that costs in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullpen.reports import Chart, ChartKind, Column, Facts, Report, Table, Type, Unit, View
from bullpen.reports import functions as F
from bullpen.reports.expressions import duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def retries(facts: Facts) -> DataFrame:
    """The runs by their number among the runs of their message, and by how they ended."""
    return (
        facts.attempts.select(
            "day",
            "agent",
            "attempt",
            "outcome",
            "error_kind",
            "messages",
            "dead",
            "wait",
            duration("started_at", "finished_at").alias("run_time"),
        )
        .groupBy("day", "agent", "attempt", "outcome", "error_kind")
        .agg(
            F.count("*").alias("runs"),
            F.sum("messages").alias("messages"),
            F.sum("dead").alias("dead"),
            F.sum("run_time").alias("run_time"),
            F.coalesce(F.sum("wait"), F.lit(0)).alias("wait"),
        )
    )


def retries_by_hand(facts: Facts) -> DataFrame:
    """The messages that a person retried."""
    return (
        facts.events.where(F.col("type") == "message_retried")
        .groupBy("day", "agent")
        .agg(F.count("*").alias("messages"))
    )


DAY = Column("day", Type.DATE, "The day on which the run finished.")
AGENT = Column("agent", Type.TEXT, "The agent.")
ATTEMPT = Column(
    "attempt",
    Type.INTEGER,
    "1 for the first run of a message, 2 for the second, and so on, whatever ended the others.",
)
KIND = Column("error_kind", Type.TEXT, "The kind of the error; NULL if the run did not fail.")
RUNS = Column("runs", Type.INTEGER, "Runs.", Unit.COUNT)
COMPLETED = Column("completed", Type.INTEGER, "Runs that completed.", Unit.COUNT)
FAILED = Column("failed", Type.INTEGER, "Runs that failed or crashed.", Unit.COUNT)
OTHER = Column("other", Type.INTEGER, "Runs that were released or cancelled.", Unit.COUNT)
DEAD = Column("dead", Type.INTEGER, "Messages that became dead letters by a run.", Unit.COUNT)
LOST = Column("lost", Type.INTEGER, "The time of runs that failed or crashed.", Unit.MILLISECONDS)
WAIT = Column("wait", Type.INTEGER, "The back-off after these runs.", Unit.MILLISECONDS)
SHARE = Column("share", Type.NUMBER, "The share of all completed runs.", Unit.SHARE)
BY_HAND = Column("by_hand", Type.INTEGER, "Messages that a person retried.", Unit.COUNT)

HAS_FAILED = "outcome IN ('failed', 'crashed')"

SUMS = f"""
    sum(runs) AS runs,
    coalesce(sum(runs) FILTER (outcome = 'completed'), 0) AS completed,
    coalesce(sum(runs) FILTER ({HAS_FAILED}), 0) AS failed
"""

COSTS = f"""
    sum(dead) AS dead, coalesce(sum(run_time) FILTER ({HAS_FAILED}), 0) AS lost, sum(wait) AS wait
"""

RETRIES = Report(
    name="retries",
    title="Retries",
    question="How many runs does an answer take, and what do the failed ones cost?",
    facts=("attempts", "events"),
    tables=(
        Table(
            name="retries",
            grain=("day", "agent", "attempt", "outcome", "error_kind"),
            columns=(
                DAY,
                AGENT,
                ATTEMPT,
                Column(
                    "outcome",
                    Type.TEXT,
                    "How the runs ended: `completed`, `failed`, `crashed`, `released` or"
                    " `cancelled`.",
                ),
                KIND,
                RUNS,
                Column("messages", Type.INTEGER, "The messages of these runs.", Unit.COUNT),
                DEAD,
                Column(
                    "run_time",
                    Type.INTEGER,
                    "The time of these runs, from start to end.",
                    Unit.MILLISECONDS,
                ),
                WAIT,
            ),
            transform=retries,
        ),
        Table(
            name="retries_by_hand",
            grain=("day", "agent"),
            columns=(
                Column("day", Type.DATE, "The day on which the messages were retried."),
                AGENT,
                Column("messages", Type.INTEGER, "Messages that a person retried.", Unit.COUNT),
            ),
            transform=retries_by_hand,
        ),
    ),
    views=(
        View(
            name="funnel",
            title="Runs by attempt: completed, tried again, dead",
            sql=f"""
                SELECT attempt, {SUMS},
                       sum(runs) - completed - failed AS other, {COSTS}
                FROM retries GROUP BY attempt ORDER BY attempt NULLS LAST
            """,  # noqa: S608 (constants)
            columns=(ATTEMPT, RUNS, COMPLETED, FAILED, OTHER, DEAD, LOST, WAIT),
            chart=Chart(kind=ChartKind.BAR, x="attempt", y=("runs", "completed", "dead")),
        ),
        View(
            name="success",
            title="Attempts to success",
            sql="""
                SELECT attempt, sum(runs) AS completed,
                       sum(runs) / sum(sum(runs)) OVER () AS share
                FROM retries WHERE outcome = 'completed'
                GROUP BY attempt ORDER BY attempt NULLS LAST
            """,
            columns=(ATTEMPT, COMPLETED, SHARE),
            chart=Chart(kind=ChartKind.BAR, x="attempt", y=("completed",)),
        ),
        View(
            name="agents",
            title="Retries by agent",
            sql=f"""
                SELECT agent, coalesce(runs, 0) AS runs, coalesce(completed, 0) AS completed,
                       coalesce(failed, 0) AS failed, coalesce(dead, 0) AS dead,
                       coalesce(lost, 0) AS lost, coalesce(wait, 0) AS wait,
                       coalesce(by_hand, 0) AS by_hand
                FROM (SELECT agent, {SUMS}, {COSTS} FROM retries GROUP BY agent)
                FULL JOIN (
                    SELECT agent, sum(messages) AS by_hand FROM retries_by_hand GROUP BY agent
                ) USING (agent)
                ORDER BY agent
            """,  # noqa: S608 (constants)
            columns=(AGENT, RUNS, COMPLETED, FAILED, DEAD, LOST, WAIT, BY_HAND),
            chart=Chart(kind=ChartKind.BAR, x="agent", y=("lost", "wait")),
        ),
        View(
            name="kinds",
            title="Failed runs by kind of error",
            sql=f"""
                SELECT error_kind, agent, sum(runs) AS failed, {COSTS}
                FROM retries WHERE {HAS_FAILED}
                GROUP BY error_kind, agent ORDER BY failed DESC, error_kind, agent
            """,  # noqa: S608 (constants)
            columns=(KIND, AGENT, FAILED, DEAD, LOST, WAIT),
            chart=Chart(kind=ChartKind.STACKED, x="agent", y=("failed",), series="error_kind"),
        ),
        View(
            name="days",
            title="Retries by day",
            sql=f"""
                SELECT day, coalesce(runs, 0) AS runs, coalesce(completed, 0) AS completed,
                       coalesce(failed, 0) AS failed, coalesce(dead, 0) AS dead,
                       coalesce(lost, 0) AS lost, coalesce(wait, 0) AS wait,
                       coalesce(by_hand, 0) AS by_hand
                FROM (SELECT day, {SUMS}, {COSTS} FROM retries GROUP BY day)
                FULL JOIN (
                    SELECT day, sum(messages) AS by_hand FROM retries_by_hand GROUP BY day
                ) USING (day)
                ORDER BY day
            """,  # noqa: S608 (constants)
            columns=(
                Column("day", Type.DATE, "The day."),
                *(RUNS, COMPLETED, FAILED, DEAD, LOST, WAIT, BY_HAND),
            ),
            chart=Chart(kind=ChartKind.LINE, x="day", y=("failed", "dead", "by_hand")),
        ),
    ),
)
