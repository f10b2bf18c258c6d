"""The report usage, with numbers that were counted by hand."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from bullpen.reports.built_in.usage import USAGE
from tests.reports.transforms import answer, at, given_facts, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIDNIGHT = at("2026-11-20 00:00:00")
TABLE, BY_SENDER = USAGE.tables


def run(began: int, ended: int, **more: str | float | None) -> dict[str, str | int | float | None]:
    return {"started_at": began, "finished_at": ended, "provider": "claude", **more}


RUNS = [
    run(MIDNIGHT - 5000, MIDNIGHT - 1, model="opus", cost=0.1, input_tokens=10, team_id="dev"),
    run(MIDNIGHT - 5000, MIDNIGHT, model="opus", cost=0.2, output_tokens=3, messages=2),
    # Rounded half up to whole millionths, then added: 1 + 1 + 0.
    run(MIDNIGHT, MIDNIGHT + 10, cost=0.0000005, outcome="failed"),
    run(MIDNIGHT, MIDNIGHT + 20, cost=0.0000014),
    # The clock was set back while it ran.
    run(MIDNIGHT + 900, MIDNIGHT + 30, cost=0.00000049, sender="Ann B."),
    run(
        MIDNIGHT, MIDNIGHT, agent="writer", channel="heartbeat", sender="heartbeat", sender_id=None
    ),
]


def test_runs_count_on_the_local_day_of_their_end_and_costs_are_exact(spark: SparkSession) -> None:
    rows = rows_of(TABLE, given_facts(spark, RUNS))
    keys = ("day", "agent", "model", "team_id", "runs", "messages", "cost_micros", "run_time")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        (date(2026, 11, 19), "coder", "opus", "dev", 1, 1, 100_000, 4999),
        (date(2026, 11, 20), "coder", None, None, 3, 3, 2, 30),
        (date(2026, 11, 20), "coder", "opus", None, 1, 2, 200_000, 5000),
        (date(2026, 11, 20), "writer", None, None, 1, 1, 0, 0),
    ]
    assert [row["failed_cost_micros"] for row in rows] == [0, 1, 0, 0]
    assert [(row["input_tokens"], row["output_tokens"]) for row in rows[:3:2]] == [(10, 0), (0, 3)]
    auckland = rows_of(TABLE, given_facts(spark, RUNS, zone="Pacific/Auckland"))
    assert {row["day"] for row in auckland} == {date(2026, 11, 20)}


def test_a_sender_who_was_renamed_is_one_sender(spark: SparkSession) -> None:
    facts = given_facts(spark, [*RUNS, run(MIDNIGHT, MIDNIGHT + 86_400_000, sender="Ann B.")])
    assert len(rows_of(BY_SENDER, facts)) == 5
    rows = answer(USAGE, "senders", facts)
    assert [(row[0], row[1], row[2], row[6]) for row in rows] == [
        ("slack", "U1", "Ann B.", 6),
        ("heartbeat", None, "heartbeat", 1),
    ]


def test_the_cost_of_a_period_is_a_sum_of_whole_numbers(spark: SparkSession) -> None:
    costs = [0.1, 0.2, 0.3, 1e-6, 1e9]
    given = [run(MIDNIGHT, MIDNIGHT + at, cost=cost) for at, cost in enumerate(costs)]
    for order in (given, given[::-1]):
        ((name, cost, share, *_),) = answer(USAGE, "agents", given_facts(spark, order))
        assert (name, cost, share) == ("coder", 1_000_000_000.600001, 1.0)
