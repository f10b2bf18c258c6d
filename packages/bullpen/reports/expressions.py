"""Expressions that several reports use: local times, durations, exact costs, and buckets of them.

Those that return a Column are for transforms. Those that return a text are DuckDB's SQL, for views.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bullpen.reports import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column

EXACT = 64
"""Durations below it, in milliseconds, have a bucket of their own."""

PER_DOUBLING = EXACT // 2
"""The number of buckets from any longer duration to its double."""


def local_time(column: str, zone: str) -> Column:
    """The local time of milliseconds since 1970, a timestamp in the session's time zone, UTC."""
    return F.from_utc_timestamp(F.timestamp_millis(F.col(column)), zone)


def local_day(column: str, zone: str) -> Column:
    """The local date of milliseconds since 1970."""
    return F.to_date(local_time(column, zone))


def duration(begin: str, end: str) -> Column:
    """The milliseconds between two times; 0 if the clock was set back in between."""
    return F.greatest(F.col(end) - F.col(begin), F.lit(0))


def sorted_values(column: str) -> Column:
    """An aggregate: the values of a group in ascending order, without NULL, for `percentile`.

    Several of Spark's `percentile_disc` in one aggregation take four times the CPU.
    """
    return F.sort_array(F.collect_list(column))


def percentile(values: str, percent: int) -> Column:
    """The exact percentile of sorted values: the lowest one that so many percent do not exceed."""
    rank = F.ceil(F.size(values) * percent / 100)
    return F.get(values, rank.cast("int") - 1)


def micro_dollars(column: str) -> Column:
    """A cost in millionths of a dollar, rounded half up.

    They are integers, so that a sum does not depend on the order of the rows. Sums of doubles do.
    """
    return F.floor(F.col(column) * 1_000_000 + 0.5)


def bucket(milliseconds: Column) -> Column:
    """The number of the bucket that contains a duration.

    A bucket is at most 1/32 wider than its lower bound, so its middle is at most 1.6 % off. Counts
    by bucket can be summed over days, which percentiles cannot. The number is computed from the
    length of the binary number: a logarithm would put some bounds into the wrong bucket.
    """
    digits = F.length(F.bin(milliseconds)) - F.lit((EXACT - 1).bit_length())
    doublings = F.greatest(digits, F.lit(0))
    shifted = F.call_function("shiftright", milliseconds, doublings)
    return (doublings * PER_DOUBLING + shifted).cast("bigint")


def bucket_middle(bucket: str) -> str:
    """SQL of the duration in the middle of a bucket, in whole milliseconds."""
    doublings = f"greatest({bucket} // {PER_DOUBLING} - 1, 0)"
    width = f"(1::BIGINT << {doublings}::INTEGER)"
    return f"(({bucket} - {doublings} * {PER_DOUBLING}) * {width} + {width} // 2)::BIGINT"


def percentiles(table: str, count: str, by: tuple[str, ...], shares: Mapping[str, int]) -> str:
    """SQL of the percentiles of durations that are counted in buckets, one row for each group.

    `table` has the columns `bucket` and `count`; `shares` are percentages by column name.
    """
    groups = ", ".join(by)
    picked = ", ".join(
        f"min(middle) FILTER (upto * 100 >= total * {share}) AS {name}"
        for name, share in shares.items()
    )
    return f"""
        SELECT {groups}, {picked} FROM (
            SELECT {groups}, {bucket_middle("bucket")} AS middle,
                   sum(sum({count})) OVER (PARTITION BY {groups} ORDER BY bucket) AS upto,
                   sum(sum({count})) OVER (PARTITION BY {groups}) AS total
            FROM {table} GROUP BY {groups}, bucket
        ) GROUP BY {groups}
    """  # noqa: S608 (names of columns, none of them from outside)
