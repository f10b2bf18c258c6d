"""The report delivery, with numbers that were counted by hand."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from bullpen.reports.built_in.delivery import DELIVERY
from tests.reports.transforms import Row, answer, at, given_facts, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIDNIGHT = at("2026-11-20 00:00:00")
TABLE, TIMES, ERRORS = DELIVERY.tables
YESTERDAY, TODAY = date(2026, 11, 19), date(2026, 11, 20)


def outcome(what: str, when: int, **more: str | int | None) -> Row:
    return {"type": f"response_{what}", "created_at": when, **more}


def delivered(
    when: int, waited: int, tries: int = 1, parts: int = 1, channel: str = "slack"
) -> Row:
    more = {"waited": waited, "tries": tries, "parts": parts}
    return outcome("delivered", when, channel=channel, **more)


EVENTS: list[Row] = [
    delivered(MIDNIGHT - 1, 100),
    *(delivered(MIDNIGHT + at, waited) for at, waited in enumerate((10, 20, 30, 5000))),
    delivered(MIDNIGHT + 9, 60_000, tries=3, parts=4),
    outcome("delivered", MIDNIGHT + 9),
    outcome("dead", MIDNIGHT + 9, error="429: try again in 30 s", tries=8, waited=99_999),
    outcome("dead", MIDNIGHT + 10, error="429: try again in 7 s"),
    outcome("unknown", MIDNIGHT + 10, error=None),
    outcome("retried", MIDNIGHT + 11, error="a person"),
    outcome("dead", MIDNIGHT + 12, channel="discord", error="gone"),
    {"type": "message_dead", "created_at": MIDNIGHT, "error": "not a response"},
]


def test_outcomes_and_exact_times_by_local_day_and_channel(spark: SparkSession) -> None:
    rows = rows_of(TABLE, given_facts(spark, (), EVENTS))
    assert [tuple(row.values()) for row in rows] == [
        (YESTERDAY, "slack", 1, 0, 0, 0, 1, 1, 1, 100, 100, 100, 100),
        (TODAY, "discord", 0, 1, 0, 0, 0, 0, 0, 0, None, None, None),
        (TODAY, "slack", 6, 2, 1, 1, 4, 7, 8, 65_060, 30, 60_000, 60_000),
    ]


def test_the_times_of_several_days_are_merged(spark: SparkSession) -> None:
    facts = given_facts(spark, (), EVENTS)
    times = rows_of(TIMES, facts)
    assert sum(int(str(each["responses"])) for each in times) == 6
    assert {each["channel"] for each in times} == {"slack"}
    slack, discord = answer(DELIVERY, "channels", facts)
    # 10 20 30 100 5000 60000: the third is the median; the last one is at most 1/64 off.
    *counts, p50, p95, slowest = slack
    assert counts == ["slack", 7, 3, 2, 1, 1, 0.3, 5 / 7, 9]
    assert (p50, slowest) == (30, 60_000)
    assert isinstance(p95, int)
    assert abs(p95 - 60_000) <= 60_000 / 64
    assert discord == ("discord", 0, 1, 1, 0, 0, 1.0, None, 0, None, None, None)


def test_errors_that_differ_only_in_numbers_are_one(spark: SparkSession) -> None:
    facts = given_facts(spark, (), EVENTS)
    assert answer(DELIVERY, "errors", facts) == [
        ("slack", "dead", "#: try again in # s", 2, MIDNIGHT + 10),
        ("discord", "dead", "gone", 1, MIDNIGHT + 12),
        ("slack", "unknown", None, 1, MIDNIGHT + 10),
    ]
    assert len(rows_of(ERRORS, facts)) == 3
