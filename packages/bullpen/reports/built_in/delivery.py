"""delivery: whether and how fast responses reach people, by channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullpen.reports import Chart, ChartKind, Column, Facts, Report, Table, Type, Unit, View
from bullpen.reports import functions as F
from bullpen.reports.expressions import bucket, percentile, percentiles, sorted_values

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

OUTCOMES = ("delivered", "dead", "unknown", "retried")
"""The types of the events are these with `response_` before them."""

ERROR_CHARS = 200


def delivery(facts: Facts) -> DataFrame:
    """The outcomes of each day, and the times of the responses that were delivered."""
    delivered = F.col("type") == "response_delivered"
    return (
        _outcomes(facts, *OUTCOMES)
        .select(
            "day",
            "channel",
            *((F.col("type") == f"response_{each}").cast("int").alias(each) for each in OUTCOMES),
            (delivered & (F.col("tries") == 1)).cast("int").alias("first_try"),
            *(F.when(delivered, F.col(each)).alias(each) for each in ("tries", "parts")),
            F.when(delivered, _waited()).alias("waited"),
        )
        .groupBy("day", "channel")
        .agg(
            *(F.sum(each).alias(each) for each in OUTCOMES),
            *(F.coalesce(F.sum(each), F.lit(0)).alias(each) for each in SUMS),
            sorted_values("waited").alias("times"),
        )
        .select(
            *("day", "channel", *OUTCOMES, *SUMS),
            percentile("times", 50).alias("waited_p50"),
            percentile("times", 95).alias("waited_p95"),
            percentile("times", 100).alias("waited_max"),
        )
    )


def delivery_times(facts: Facts) -> DataFrame:
    """The delivered responses, counted by the time that they waited."""
    return (
        _outcomes(facts, "delivered")
        .where(F.col("waited").isNotNull())
        .select("day", "channel", bucket(_waited()).alias("bucket"))
        .groupBy("day", "channel", "bucket")
        .agg(F.count("*").alias("responses"))
    )


def delivery_errors(facts: Facts) -> DataFrame:
    """The errors of the responses that are dead or unknown."""
    error = F.regexp_replace(F.substring("error", 1, ERROR_CHARS), "[0-9]+", "#")
    return (
        _outcomes(facts, "dead", "unknown")
        .select(
            "day",
            "channel",
            F.replace("type", F.lit("response_"), F.lit("")).alias("outcome"),
            error.alias("error"),
            "created_at",
        )
        .groupBy("day", "channel", "outcome", "error")
        .agg(F.count("*").alias("responses"), F.max("created_at").alias("last_at"))
    )


def _outcomes(facts: Facts, *outcomes: str) -> DataFrame:
    return facts.events.where(F.col("type").isin([f"response_{each}" for each in outcomes]))


def _waited() -> Expression:
    """The time from storing to delivery; 0 if the clock was set back in between."""
    return F.when(F.col("waited").isNotNull(), F.greatest(F.col("waited"), F.lit(0)))


SUMS = ("first_try", "tries", "parts", "waited")

DAY = Column("day", Type.DATE, "The day of the outcome.")
CHANNEL = Column("channel", Type.TEXT, "The channel or account that delivers the responses.")
DELIVERED = Column("delivered", Type.INTEGER, "Responses that were delivered.", Unit.COUNT)
DEAD = Column(
    "dead", Type.INTEGER, "Responses that could not be delivered, or expired.", Unit.COUNT
)
UNKNOWN = Column("unknown", Type.INTEGER, "Responses that may not have arrived.", Unit.COUNT)
RETRIED = Column("retried", Type.INTEGER, "Responses that a person retried.", Unit.COUNT)
FAILED = Column("failed", Type.INTEGER, "Responses that became dead or unknown.", Unit.COUNT)
PARTS = Column("parts", Type.INTEGER, "Parts of the delivered responses.", Unit.COUNT)
P50 = Column(
    "waited_p50",
    Type.INTEGER,
    "Half of the delivered responses waited at most this long.",
    Unit.MILLISECONDS,
)
P95 = Column(
    "waited_p95",
    Type.INTEGER,
    "95 % of the delivered responses waited at most this long.",
    Unit.MILLISECONDS,
)
SLOWEST = Column(
    "waited_max", Type.INTEGER, "The longest wait of a delivered response.", Unit.MILLISECONDS
)
OUTCOME = Column("outcome", Type.TEXT, "`dead` or `unknown`.")
ERROR = Column(
    "error",
    Type.TEXT,
    f"The first {ERROR_CHARS} characters of the error, with `#` instead of numbers.",
)
RESPONSES = Column("responses", Type.INTEGER, "Responses.", Unit.COUNT)

COUNTS = ", ".join(
    [*(f"sum({each}) AS {each}" for each in OUTCOMES), "sum(dead) + sum(unknown) AS failed"]
)
WAITS = percentiles(
    "delivery_times", "responses", ("channel",), {"waited_p50": 50, "waited_p95": 95}
)

DELIVERY = Report(
    name="delivery",
    title="Delivery",
    question="Do responses reach people, how long does it take, and which channels fail?",
    facts=("events",),
    tables=(
        Table(
            name="delivery",
            grain=("day", "channel"),
            columns=(
                DAY,
                CHANNEL,
                DELIVERED,
                DEAD,
                UNKNOWN,
                RETRIED,
                Column(
                    "first_try",
                    Type.INTEGER,
                    "Responses that were delivered at the first try.",
                    Unit.COUNT,
                ),
                Column("tries", Type.INTEGER, "Tries of the delivered responses.", Unit.COUNT),
                PARTS,
                Column(
                    "waited",
                    Type.INTEGER,
                    "The time from storing to delivery, the sum of the delivered responses.",
                    Unit.MILLISECONDS,
                ),
                P50,
                P95,
                SLOWEST,
            ),
            transform=delivery,
        ),
        Table(
            name="delivery_times",
            grain=("day", "channel", "bucket"),
            columns=(
                DAY,
                CHANNEL,
                Column(
                    "bucket",
                    Type.INTEGER,
                    "The bucket of the time from storing to delivery. Counts by bucket can be"
                    " summed over days, which percentiles cannot.",
                ),
                Column("responses", Type.INTEGER, "Delivered responses.", Unit.COUNT),
            ),
            transform=delivery_times,
        ),
        Table(
            name="delivery_errors",
            grain=("day", "channel", "outcome", "error"),
            columns=(
                DAY,
                CHANNEL,
                OUTCOME,
                ERROR,
                RESPONSES,
                Column("last_at", Type.INTEGER, "When the last one failed.", Unit.TIME),
            ),
            transform=delivery_errors,
        ),
    ),
    views=(
        View(
            name="channels",
            title="Deliveries by channel",
            sql=f"""
                SELECT channel, delivered, failed, dead, unknown, retried, failed_share,
                       first_try_share, parts, waited_p50, waited_p95, waited_max
                FROM (
                    SELECT channel, {COUNTS}, sum(parts) AS parts, max(waited_max) AS waited_max,
                           (sum(dead) + sum(unknown)) / nullif(
                               sum(delivered) + sum(dead) + sum(unknown), 0) AS failed_share,
                           sum(first_try) / nullif(sum(delivered), 0) AS first_try_share
                    FROM delivery GROUP BY channel
                ) LEFT JOIN ({WAITS}) USING (channel)
                ORDER BY failed DESC, delivered DESC, channel
            """,  # noqa: S608 (names of columns)
            columns=(
                CHANNEL,
                DELIVERED,
                FAILED,
                DEAD,
                UNKNOWN,
                RETRIED,
                Column("failed_share", Type.NUMBER, "The share that failed.", Unit.SHARE),
                Column(
                    "first_try_share",
                    Type.NUMBER,
                    "The share of the delivered responses that needed one try.",
                    Unit.SHARE,
                ),
                PARTS,
                P50,
                P95,
                SLOWEST,
            ),
            chart=Chart(kind=ChartKind.STACKED, x="channel", y=("delivered", "dead", "unknown")),
        ),
        View(
            name="failures",
            title="Failed deliveries by day and channel",
            sql=f"""
                SELECT day, channel, {COUNTS} FROM delivery
                GROUP BY day, channel ORDER BY day, channel
            """,  # noqa: S608 (names of columns)
            columns=(DAY, CHANNEL, DELIVERED, DEAD, UNKNOWN, RETRIED, FAILED),
            chart=Chart(kind=ChartKind.STACKED, x="day", y=("failed",), series="channel"),
        ),
        View(
            name="times",
            title="Time to delivery by day and channel",
            sql="""
                SELECT day, channel, delivered, waited_p50, waited_p95, waited_max
                FROM delivery ORDER BY day, channel
            """,
            columns=(DAY, CHANNEL, DELIVERED, P50, P95, SLOWEST),
            chart=Chart(kind=ChartKind.LINE, x="day", y=("waited_p95",), series="channel"),
        ),
        View(
            name="errors",
            title="Errors of failed deliveries",
            sql="""
                SELECT channel, outcome, error, sum(responses) AS responses,
                       max(last_at) AS last_at
                FROM delivery_errors GROUP BY channel, outcome, error
                ORDER BY responses DESC, channel, outcome, error
            """,
            columns=(
                CHANNEL,
                OUTCOME,
                ERROR,
                RESPONSES,
                Column("last_at", Type.INTEGER, "When the last one failed.", Unit.TIME),
            ),
            chart=Chart(kind=ChartKind.BAR, x="error", y=("responses",)),
        ),
    ),
    filters=("channel",),
)
