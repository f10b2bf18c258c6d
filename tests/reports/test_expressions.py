"""Buckets of durations: narrow enough, and percentiles of their counts."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from bullpen.reports.expressions import PER_DOUBLING, bucket_middle, percentiles


def bucket_of(milliseconds: int) -> int:
    """The bucket, as the expression of the same name computes it."""
    doublings = max(milliseconds.bit_length() - 6, 0)
    return doublings * PER_DOUBLING + (milliseconds >> doublings)


@pytest.fixture
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def test_the_middle_of_a_bucket_is_at_most_a_64th_off(db: duckdb.DuckDBPyConnection) -> None:
    values = {*range(3000), *(2**power + add for power in range(12, 45) for add in (-1, 0, 1))}
    buckets = sorted({bucket_of(each) for each in values})
    found = dict(
        db.execute(f"SELECT b, {bucket_middle('b')} FROM unnest(?) t(b)", [buckets]).fetchall()
    )
    assert not [each for each in values if abs(found[bucket_of(each)] - each) * 64 > each]


def test_percentiles_of_counts_are_those_of_the_durations(db: duckdb.DuckDBPyConnection) -> None:
    db.execute("CREATE TABLE times (day INTEGER, channel TEXT, bucket BIGINT, responses BIGINT)")
    slack = [10, 20, 20, 30, 40, 50, 60, 61, 62, 63]
    for at, each in enumerate(slack):
        db.execute("INSERT INTO times VALUES (?, 'slack', ?, 1)", [at % 3, bucket_of(each)])
    db.execute("INSERT INTO times VALUES (1, 'discord', 0, 99), (2, 'discord', 7, 1)")
    sql = percentiles("times", "responses", ("channel",), {"p50": 50, "p95": 95, "p99": 99})
    assert sorted(db.execute(sql).fetchall()) == [("discord", 0, 0, 0), ("slack", 40, 63, 63)]
