"""usage: tokens and cost by agent, model, team, channel, sender and day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullpen.reports import Chart, ChartKind, Column, Facts, Report, Table, Type, Unit, View
from bullpen.reports import functions as F
from bullpen.reports.expressions import duration, micro_dollars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AMOUNTS = (
    *("runs", "messages", "input_tokens", "output_tokens"),
    *("cost_micros", "failed_cost_micros", "run_time"),
)


def usage(facts: Facts) -> DataFrame:
    """The runs of each agent, with their tokens and cost."""
    return _amounts(facts, ("day", "agent", "provider", "model", "team_id", "channel"))


def usage_by_sender(facts: Facts) -> DataFrame:
    """The runs that each sender set off, handoffs included."""
    return _amounts(facts, ("day", "channel", "sender_id", "sender"))


def _amounts(facts: Facts, grain: tuple[str, ...]) -> DataFrame:
    cost = micro_dollars("cost")
    failed_cost = F.when(F.col("outcome") != "completed", cost).otherwise(0)
    return (
        facts.attempts.select(
            *grain,
            F.lit(1).alias("runs"),
            *("messages", "input_tokens", "output_tokens"),
            cost.alias("cost_micros"),
            failed_cost.alias("failed_cost_micros"),
            duration("started_at", "finished_at").alias("run_time"),
        )
        .groupBy(*grain)
        .agg(*(F.sum(each).alias(each) for each in AMOUNTS))
    )


DAY = Column("day", Type.DATE, "The day on which the runs finished.")
AGENT = Column("agent", Type.TEXT, "The agent.")
PROVIDER = Column("provider", Type.TEXT, "The provider; NULL if no provider was started.")
MODEL = Column("model", Type.TEXT, "The model; NULL if the provider did not report it.")
TEAM = Column("team_id", Type.TEXT, "The team; NULL without a team.")
CHANNEL = Column("channel", Type.TEXT, "The channel or account that the conversation began on.")
SENDER_ID = Column(
    "sender_id", Type.TEXT, "The sender's id on the platform; NULL on channels without ids."
)
SENDER = Column("sender", Type.TEXT, "The sender's name.")
RUNS = Column("runs", Type.INTEGER, "Runs that finished, whatever ended them.", Unit.COUNT)
MESSAGES = Column("messages", Type.INTEGER, "Messages in these runs.", Unit.COUNT)
INPUT = Column("input_tokens", Type.INTEGER, "Tokens of the input.", Unit.TOKENS)
OUTPUT = Column("output_tokens", Type.INTEGER, "Tokens of the output.", Unit.TOKENS)
COST_MICROS = Column(
    "cost_micros",
    Type.INTEGER,
    "The cost in millionths of a dollar; each run is rounded.",
    Unit.MICRO_DOLLARS,
)
FAILED_COST_MICROS = Column(
    "failed_cost_micros",
    Type.INTEGER,
    "The part of the cost for runs that were not completed.",
    Unit.MICRO_DOLLARS,
)
RUN_TIME = Column("run_time", Type.INTEGER, "The time that the provider ran.", Unit.MILLISECONDS)
COST = Column("cost", Type.NUMBER, "The cost.", Unit.DOLLARS)
FAILED_COST = Column(
    "failed_cost", Type.NUMBER, "The cost of runs that were not completed.", Unit.DOLLARS
)
SHARE = Column("share", Type.NUMBER, "Its share of the cost of all rows.", Unit.SHARE)

STORED = (RUNS, MESSAGES, INPUT, OUTPUT, COST_MICROS, FAILED_COST_MICROS, RUN_TIME)
SHOWN = (COST, SHARE, FAILED_COST, RUNS, MESSAGES, INPUT, OUTPUT, RUN_TIME)

TOTALS = """
    sum(cost_micros) / 1e6 AS cost,
    sum(cost_micros) / nullif(sum(sum(cost_micros)) OVER (), 0) AS share,
    sum(failed_cost_micros) / 1e6 AS failed_cost,
    sum(runs) AS runs,
    sum(messages) AS messages,
    sum(input_tokens) AS input_tokens,
    sum(output_tokens) AS output_tokens,
    sum(run_time) AS run_time
"""


def _totals(name: str, title: str, *by: Column) -> View:
    """The amounts by some columns, the highest cost first."""
    columns = ", ".join(each.name for each in by)
    return View(
        name=name,
        title=title,
        sql=f"""
            SELECT {columns}, {TOTALS} FROM usage
            GROUP BY {columns} ORDER BY cost DESC, {columns}
        """,  # noqa: S608 (names of columns)
        columns=(*by, *SHOWN),
        chart=Chart(kind=ChartKind.BAR, x=by[-1].name, y=("cost",)),
    )


USAGE = Report(
    name="usage",
    title="Usage",
    question="How many tokens and dollars does each agent, model, team, channel and sender use?",
    facts=("attempts",),
    tables=(
        Table(
            name="usage",
            grain=("day", "agent", "provider", "model", "team_id", "channel"),
            columns=(DAY, AGENT, PROVIDER, MODEL, TEAM, CHANNEL, *STORED),
            transform=usage,
        ),
        Table(
            name="usage_by_sender",
            grain=("day", "channel", "sender_id", "sender"),
            columns=(DAY, CHANNEL, SENDER_ID, SENDER, *STORED),
            transform=usage_by_sender,
        ),
    ),
    views=(
        View(
            name="days",
            title="Cost by day and agent",
            sql=f"""
                SELECT day, agent, {TOTALS} FROM usage GROUP BY day, agent ORDER BY day, agent
            """,  # noqa: S608 (names of columns)
            columns=(DAY, AGENT, *SHOWN),
            chart=Chart(kind=ChartKind.STACKED, x="day", y=("cost",), series="agent"),
        ),
        _totals("agents", "Cost by agent", AGENT),
        _totals("models", "Cost by provider and model", PROVIDER, MODEL),
        _totals("teams", "Cost by team", TEAM),
        _totals("channels", "Cost by channel", CHANNEL),
        View(
            name="senders",
            title="Cost by sender",
            sql=f"""
                SELECT channel, sender_id, max_by(sender, day) AS sender, {TOTALS}
                FROM usage_by_sender
                GROUP BY channel, sender_id, CASE WHEN sender_id IS NULL THEN sender END
                ORDER BY cost DESC, channel, sender_id, sender
            """,  # noqa: S608 (names of columns)
            columns=(
                CHANNEL,
                SENDER_ID,
                Column("sender", Type.TEXT, "The name that the sender had last."),
                *SHOWN,
            ),
            chart=Chart(kind=ChartKind.BAR, x="sender", y=("cost",)),
        ),
    ),
    filters=("agent", "team", "channel"),
)
