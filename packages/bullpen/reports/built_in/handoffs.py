"""handoffs: which agents hand work to each other, how far it goes, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullpen.reports import Chart, ChartKind, Column, Facts, Report, Table, Type, Unit, View
from bullpen.reports import functions as F
from bullpen.reports.expressions import duration, local_day, micro_dollars

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

COSTLIEST = 20
"""The number of conversations in each group of a day that have a row of their own."""

AMOUNTS = ("handoffs", "runs", "runs_failed", "cost_micros", "run_time")


def handoffs(facts: Facts) -> DataFrame:
    """The messages that each agent handed to each other one, and the runs that answered them."""
    grain = ("day", "from_agent", "agent", "team_id", "channel")
    is_handoff = F.col("from_agent").isNotNull()
    messages = facts.events.where((F.col("type") == "message_enqueued") & is_handoff).select(
        *grain,
        F.lit(1).alias("handoffs"),
        F.lit(0).alias("runs"),
        F.lit(0).alias("runs_failed"),
        F.lit(0).cast("bigint").alias("cost_micros"),
        F.lit(0).cast("bigint").alias("run_time"),
    )
    runs = facts.attempts.where(is_handoff).select(
        *grain,
        F.lit(0).alias("handoffs"),
        F.lit(1).alias("runs"),
        F.col("outcome").isin("failed", "crashed").cast("int").alias("runs_failed"),
        micro_dollars("cost").alias("cost_micros"),
        duration("started_at", "finished_at").alias("run_time"),
    )
    return (
        messages.unionByName(runs)
        .groupBy(*grain)
        .agg(*(F.sum(each).alias(each) for each in AMOUNTS))
    )


def fan_out(facts: Facts) -> DataFrame:
    """The runs that handed work on, counted by the number of their handoffs."""
    is_handoff = F.col("from_agent").isNotNull() & F.col("parent_id").isNotNull()
    return (
        facts.events.where((F.col("type") == "message_enqueued") & is_handoff)
        # A run writes all its handoffs in one transaction, and so on one day.
        .groupBy("day", "from_agent", "parent_id")
        .agg(F.count("*").alias("handoffs"))
        .groupBy("day", "from_agent", "handoffs")
        .agg(F.count("*").alias("runs"))
    )


def chains(facts: Facts) -> DataFrame:
    """The conversations of each day by depth: the costliest one by one, the others in a sum."""
    by_depth = (
        _conversations(facts)
        .groupBy("day", "depth")
        .agg(
            *(F.sum(each).alias(each) for each in CHAIN_SUMS),
            F.max_by(
                F.struct("conversation_id", *CHAIN_SUMS),
                F.struct("cost_micros", "runs", "conversation_id"),
                COSTLIEST,
            ).alias("costliest"),
        )
    )
    others = F.struct(
        F.lit(None).cast("string").alias("conversation_id"),
        *((F.col(each) - _sum_of("costliest", each)).alias(each) for each in CHAIN_SUMS),
    )
    rows = F.explode(F.concat("costliest", F.array(others)))
    return (
        by_depth.select("day", "depth", rows.alias("row"))
        .select("day", "depth", "row.*")
        .where(F.col("conversations") > 0)
    )


def _conversations(facts: Facts) -> DataFrame:
    """One row for each conversation. Its day is that of its first message.

    Messages from before version 0.2, and those that a program adds to a conversation, have times
    of their own. On another day, they are a conversation of their own.
    """
    return (
        facts.attempts.where(F.col("conversation_at").isNotNull())
        .select(
            local_day("conversation_at", facts.zone).alias("day"),
            *("conversation_id", "conversation_at", "agent", "finished_at"),
            F.col("hop").alias("depth"),
            micro_dollars("cost").alias("cost_micros"),
        )
        # One shuffle for both aggregations; a count of distinct agents would take two.
        .repartition("conversation_id")
        .groupBy("day", "conversation_id", "agent")
        .agg(*_amounts(), F.count("*").alias("runs"))
        .groupBy("day", "conversation_id")
        .agg(*_amounts(), F.sum("runs").alias("runs"), F.count("*").alias("agents"))
        .select(
            *("day", "conversation_id", "depth"),
            F.lit(1).cast("bigint").alias("conversations"),
            *("runs", "agents", "cost_micros"),
            duration("conversation_at", "finished_at").alias("duration"),
        )
    )


def _amounts() -> tuple[Expression, ...]:
    return (
        F.min("conversation_at").alias("conversation_at"),
        F.max("finished_at").alias("finished_at"),
        F.max("depth").alias("depth"),
        F.sum("cost_micros").alias("cost_micros"),
    )


def _sum_of(rows: str, field: str) -> Expression:
    return F.aggregate(rows, F.lit(0).cast("bigint"), lambda total, row: total + row[field])


CHAIN_SUMS = ("conversations", "runs", "agents", "cost_micros", "duration")

DAY = Column("day", Type.DATE, "The day of the handoff, or of the end of the run.")
FROM = Column("from_agent", Type.TEXT, "The agent that handed the work over.")
TO = Column("agent", Type.TEXT, "The agent that received it.")
MESSAGES = Column("handoffs", Type.INTEGER, "Messages that were handed over.", Unit.COUNT)
RUNS = Column("runs", Type.INTEGER, "Runs that answered handoffs.", Unit.COUNT)
FAILED = Column("runs_failed", Type.INTEGER, "Runs of these that failed or crashed.", Unit.COUNT)
RUN_TIME = Column(
    "run_time", Type.INTEGER, "The time that the provider ran in them.", Unit.MILLISECONDS
)
COST = Column("cost", Type.NUMBER, "The cost of the runs.", Unit.DOLLARS)
FANNED = Column("handoffs", Type.INTEGER, "The number of messages that one run handed over.")
FANNING_RUNS = Column("runs", Type.INTEGER, "Runs with this number of handoffs.", Unit.COUNT)

BEGUN = Column("day", Type.DATE, "The day on which the conversation began.")
DEPTH = Column(
    "depth", Type.INTEGER, "The most handoffs between the sender and a run; 0 without handoffs."
)
CONVERSATIONS = Column("conversations", Type.INTEGER, "Conversations.", Unit.COUNT)
CHAIN_RUNS = Column("runs", Type.INTEGER, "Runs in them.", Unit.COUNT)
CONVERSATION = Column("conversation_id", Type.TEXT, "The conversation, for `bullpen trace`.")

AMOUNTS_SHOWN = """
    sum(handoffs) AS handoffs, sum(runs) AS runs, sum(runs_failed) AS runs_failed,
    sum(cost_micros) / 1e6 AS cost, sum(run_time) AS run_time
"""

HANDOFFS = Report(
    name="handoffs",
    title="Handoffs",
    question="Which agents hand work to each other, how far does it go, and what does it cost?",
    facts=("attempts", "events"),
    tables=(
        Table(
            name="handoffs",
            grain=("day", "from_agent", "agent", "team_id", "channel"),
            columns=(
                DAY,
                FROM,
                TO,
                Column("team_id", Type.TEXT, "The team; NULL without a team."),
                Column(
                    "channel", Type.TEXT, "The channel or account that the conversation began on."
                ),
                MESSAGES,
                RUNS,
                FAILED,
                Column(
                    "cost_micros",
                    Type.INTEGER,
                    "The cost of the runs in millionths of a dollar; each run is rounded.",
                    Unit.MICRO_DOLLARS,
                ),
                RUN_TIME,
            ),
            transform=handoffs,
        ),
        Table(
            name="fan_out",
            grain=("day", "from_agent", "handoffs"),
            columns=(
                Column("day", Type.DATE, "The day of the handoffs."),
                FROM,
                FANNED,
                FANNING_RUNS,
            ),
            transform=fan_out,
        ),
        Table(
            name="chains",
            grain=("day", "depth", "conversation_id"),
            columns=(
                BEGUN,
                DEPTH,
                Column(
                    "conversation_id",
                    Type.TEXT,
                    f"The conversation. The {COSTLIEST} costliest ones of each day and depth have a"
                    " row of their own; the row with NULL is the sum of the others.",
                ),
                CONVERSATIONS,
                CHAIN_RUNS,
                Column(
                    "agents",
                    Type.INTEGER,
                    "The agents of each conversation, the sum over the conversations.",
                    Unit.COUNT,
                ),
                Column(
                    "cost_micros",
                    Type.INTEGER,
                    "Their cost in millionths of a dollar; each run is rounded.",
                    Unit.MICRO_DOLLARS,
                ),
                Column(
                    "duration",
                    Type.INTEGER,
                    "The time from the first message to the end of the last run, the sum over the"
                    " conversations.",
                    Unit.MILLISECONDS,
                ),
            ),
            transform=chains,
        ),
    ),
    views=(
        View(
            name="agents",
            title="Handoffs from agent to agent",
            sql=f"""
                SELECT from_agent, agent, {AMOUNTS_SHOWN} FROM handoffs
                GROUP BY from_agent, agent ORDER BY handoffs DESC, from_agent, agent
            """,  # noqa: S608 (names of columns)
            columns=(FROM, TO, MESSAGES, RUNS, FAILED, COST, RUN_TIME),
            chart=Chart(kind=ChartKind.HEATMAP, x="agent", y=("from_agent",), series="handoffs"),
        ),
        View(
            name="days",
            title="Handoffs by day and agent",
            sql=f"""
                SELECT day, from_agent, {AMOUNTS_SHOWN} FROM handoffs
                GROUP BY day, from_agent ORDER BY day, from_agent
            """,  # noqa: S608 (names of columns)
            columns=(DAY, FROM, MESSAGES, RUNS, FAILED, COST, RUN_TIME),
            chart=Chart(kind=ChartKind.STACKED, x="day", y=("handoffs",), series="from_agent"),
        ),
        View(
            name="conversations",
            title=f"The {COSTLIEST} costliest conversations",
            sql=f"""
                SELECT conversation_id, day, depth, runs, agents, cost_micros / 1e6 AS cost,
                       duration
                FROM chains WHERE conversation_id IS NOT NULL
                ORDER BY cost DESC, runs DESC, conversation_id DESC LIMIT {COSTLIEST}
            """,  # noqa: S608 (a number)
            columns=(
                CONVERSATION,
                BEGUN,
                DEPTH,
                CHAIN_RUNS,
                Column("agents", Type.INTEGER, "Agents that took part.", Unit.COUNT),
                COST,
                Column(
                    "duration",
                    Type.INTEGER,
                    "The time from the first message to the end of the last run.",
                    Unit.MILLISECONDS,
                ),
            ),
            chart=Chart(kind=ChartKind.BAR, x="conversation_id", y=("cost",)),
        ),
        View(
            name="depths",
            title="Conversations by depth",
            sql="""
                SELECT depth, sum(conversations) AS conversations, sum(runs) AS runs,
                       sum(runs) / sum(conversations) AS average_runs,
                       sum(agents) / sum(conversations) AS average_agents,
                       sum(cost_micros) / 1e6 AS cost,
                       sum(cost_micros) / 1e6 / sum(conversations) AS average_cost,
                       sum(duration) / sum(conversations) AS average_duration
                FROM chains GROUP BY depth ORDER BY depth
            """,
            columns=(
                DEPTH,
                CONVERSATIONS,
                CHAIN_RUNS,
                Column("average_runs", Type.NUMBER, "Runs of a conversation, on average."),
                Column("average_agents", Type.NUMBER, "Agents of a conversation, on average."),
                COST,
                Column(
                    "average_cost",
                    Type.NUMBER,
                    "The cost of a conversation, on average.",
                    Unit.DOLLARS,
                ),
                Column(
                    "average_duration",
                    Type.NUMBER,
                    "The duration of a conversation, on average.",
                    Unit.MILLISECONDS,
                ),
            ),
            chart=Chart(kind=ChartKind.BAR, x="depth", y=("conversations",)),
        ),
        View(
            name="fan-out",
            title="Runs by the number of their handoffs",
            sql="""
                SELECT from_agent, handoffs, sum(runs) AS runs FROM fan_out
                GROUP BY from_agent, handoffs ORDER BY from_agent, handoffs
            """,
            columns=(FROM, FANNED, FANNING_RUNS),
            chart=Chart(kind=ChartKind.STACKED, x="handoffs", y=("runs",), series="from_agent"),
        ),
    ),
    filters=("agent", "team", "channel"),
)
