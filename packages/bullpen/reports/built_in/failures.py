"""failures: the errors of runs, grouped by fingerprint, and whom they affect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullpen.reports import Chart, ChartKind, Column, Facts, Report, Table, Type, Unit, View
from bullpen.reports import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ERROR_CHARS = 300
"""The length of an example. Its row is repeated for each sender."""


def failures(facts: Facts) -> DataFrame:
    """The failed runs and the dead messages of each fingerprint, by kind, agent and sender."""
    grain = ("day", "fingerprint", "kind", "agent", "sender_id")
    runs = facts.attempts.where(F.col("fingerprint").isNotNull()).select(
        "day",
        "fingerprint",
        F.col("error_kind").alias("kind"),
        "agent",
        "sender_id",
        "error",
        F.col("finished_at").alias("at"),
        F.lit(1).alias("runs"),
        F.lit(0).alias("dead"),
    )
    is_death = (F.col("type") == "message_dead") & F.col("fingerprint").isNotNull()
    deaths = facts.events.where(is_death).select(
        *grain,
        "error",
        F.col("created_at").alias("at"),
        F.lit(0).alias("runs"),
        F.lit(1).alias("dead"),
    )
    # The newest error. At the same time, that of the run: the event has its beginning only.
    newest = F.max_by("error", F.struct("at", "error"))
    return (
        runs.unionByName(deaths)
        .groupBy(*grain)
        .agg(
            F.substring(newest, 1, ERROR_CHARS).alias("error"),
            F.sum("runs").alias("runs"),
            F.sum("dead").alias("dead"),
            F.min("at").alias("first_at"),
            F.max("at").alias("last_at"),
        )
    )


DAY = Column("day", Type.DATE, "The day.")
FINGERPRINT = Column(
    "fingerprint", Type.TEXT, "Equal for errors that differ only in numbers and ids."
)
KIND = Column("kind", Type.TEXT, "The kind of the error.")
AGENT = Column("agent", Type.TEXT, "The agent.")
ERROR = Column("error", Type.TEXT, f"The newest error, its first {ERROR_CHARS} characters.")
RUNS = Column("runs", Type.INTEGER, "Runs that failed or crashed with it.", Unit.COUNT)
DEAD = Column("dead", Type.INTEGER, "Messages that became dead letters of it.", Unit.COUNT)
FIRST = Column("first_at", Type.INTEGER, "The first time in the period.", Unit.TIME)
LAST = Column("last_at", Type.INTEGER, "The last time in the period.", Unit.TIME)
ERRORS = Column("errors", Type.INTEGER, "Different errors, by fingerprint.", Unit.COUNT)
AGENTS = Column("agents", Type.INTEGER, "Agents that had it.", Unit.COUNT)
PEOPLE = Column("people", Type.INTEGER, "Senders that it affected.", Unit.COUNT)

FAILURES = Report(
    name="failures",
    title="Failures",
    question="Which errors happen, since when, and which agents and people do they affect?",
    facts=("attempts", "events"),
    tables=(
        Table(
            name="failures",
            grain=("day", "fingerprint", "kind", "agent", "sender_id"),
            columns=(
                DAY,
                FINGERPRINT,
                KIND,
                AGENT,
                Column(
                    "sender_id",
                    Type.TEXT,
                    "The sender of the message, for a batch of its first one; NULL if it was not"
                    " a person.",
                ),
                ERROR,
                RUNS,
                DEAD,
                Column("first_at", Type.INTEGER, "The first time on the day.", Unit.TIME),
                Column("last_at", Type.INTEGER, "The last time on the day.", Unit.TIME),
            ),
            transform=failures,
        ),
    ),
    views=(
        View(
            name="errors",
            title="Errors by fingerprint",
            sql="""
                SELECT fingerprint, string_agg(DISTINCT kind, ', ' ORDER BY kind) AS kinds,
                       arg_max(error, {'at': last_at, 'error': error}) AS error,
                       sum(runs) AS runs, sum(dead) AS dead,
                       count(DISTINCT agent) AS agents, count(DISTINCT sender_id) AS people,
                       min(first_at) AS first_at, max(last_at) AS last_at
                FROM failures GROUP BY fingerprint ORDER BY runs DESC, dead DESC, fingerprint
            """,
            columns=(
                FINGERPRINT,
                Column("kinds", Type.TEXT, "The kinds of the errors, separated by commas."),
                ERROR,
                RUNS,
                DEAD,
                AGENTS,
                PEOPLE,
                FIRST,
                LAST,
            ),
            chart=Chart(kind=ChartKind.BAR, x="error", y=("runs", "dead")),
        ),
        View(
            name="days",
            title="Failures by day and kind",
            sql="""
                SELECT day, kind, sum(runs) AS runs, sum(dead) AS dead,
                       count(DISTINCT fingerprint) AS errors, count(DISTINCT agent) AS agents,
                       count(DISTINCT sender_id) AS people
                FROM failures GROUP BY day, kind ORDER BY day, kind
            """,
            columns=(DAY, KIND, RUNS, DEAD, ERRORS, AGENTS, PEOPLE),
            chart=Chart(kind=ChartKind.STACKED, x="day", y=("runs",), series="kind"),
        ),
        View(
            name="agents",
            title="Failures by agent",
            sql="""
                SELECT agent, sum(runs) AS runs, sum(dead) AS dead,
                       count(DISTINCT fingerprint) AS errors,
                       count(DISTINCT sender_id) AS people, max(last_at) AS last_at
                FROM failures GROUP BY agent ORDER BY runs DESC, agent
            """,
            columns=(AGENT, RUNS, DEAD, ERRORS, PEOPLE, LAST),
            chart=Chart(kind=ChartKind.BAR, x="agent", y=("runs", "dead")),
        ),
    ),
)
