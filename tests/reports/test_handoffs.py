"""The report handoffs, with numbers that were counted by hand."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from bullpen.reports.built_in.handoffs import COSTLIEST, HANDOFFS
from tests.reports.transforms import Row, answer, at, given_facts, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIDNIGHT = at("2026-11-20 00:00:00")
YESTERDAY, TODAY = date(2026, 11, 19), date(2026, 11, 20)
TABLE, FAN_OUT, CHAINS = HANDOFFS.tables


def run(conversation: str, agent: str, hop: int, ended: int, **more: str | float | None) -> Row:
    return {
        "conversation_id": conversation,
        "conversation_at": MIDNIGHT - 60_000,
        "agent": agent,
        "hop": hop,
        "started_at": ended - 100,
        "finished_at": ended,
        **more,
    }


def handoff(parent: str, sender: str, agent: str, when: int, **more: str | None) -> Row:
    return {"parent_id": parent, "from_agent": sender, "agent": agent, "created_at": when, **more}


# leader → coder, tester before midnight; coder → tester after it. A second, short conversation.
ATTEMPTS = [
    run("slack_1", "leader", 0, MIDNIGHT - 1000, cost=0.5),
    run("slack_1", "coder", 1, MIDNIGHT - 1, from_agent="leader", cost=0.25, outcome="failed"),
    run("slack_1", "coder", 1, MIDNIGHT, from_agent="leader", cost=0.25),
    run("slack_1", "tester", 1, MIDNIGHT + 5, from_agent="leader", channel="chatroom"),
    run("slack_1", "tester", 2, MIDNIGHT + 7000, from_agent="coder", cost=1.0, team_id="dev"),
    run("slack_2", "leader", 0, MIDNIGHT + 50, conversation_at=MIDNIGHT, cost=0.1),
    run("slack_0", "leader", 0, MIDNIGHT, conversation_at=None, cost=9.0),
]
EVENTS: list[Row] = [
    {"created_at": MIDNIGHT - 60_000, "agent": "leader"},
    handoff("slack_1", "leader", "coder", MIDNIGHT - 1000),
    handoff("slack_1", "leader", "tester", MIDNIGHT - 1000, channel="chatroom"),
    handoff("slack_7", "coder", "tester", MIDNIGHT, team_id="dev"),
    handoff("slack_7", "coder", "tester", MIDNIGHT, team_id="dev", type="message_dead"),
]


def test_handoffs_and_their_runs_count_on_their_own_local_days(spark: SparkSession) -> None:
    rows = rows_of(TABLE, given_facts(spark, ATTEMPTS, EVENTS))
    assert [tuple(row.values()) for row in rows] == [
        (YESTERDAY, "leader", "coder", None, "slack", 1, 1, 1, 250_000, 100),
        (YESTERDAY, "leader", "tester", None, "chatroom", 1, 0, 0, 0, 0),
        (TODAY, "coder", "tester", "dev", "slack", 1, 1, 0, 1_000_000, 100),
        (TODAY, "leader", "coder", None, "slack", 0, 1, 0, 250_000, 100),
        (TODAY, "leader", "tester", None, "chatroom", 0, 1, 0, 0, 100),
    ]
    found = answer(HANDOFFS, "agents", given_facts(spark, ATTEMPTS, EVENTS))
    assert [row[:6] for row in found] == [
        ("coder", "tester", 1, 1, 0, 1.0),
        ("leader", "coder", 1, 2, 1, 0.5),
        ("leader", "tester", 1, 1, 0, 0.0),
    ]


def test_a_run_with_two_handoffs_is_one_run_in_the_fan_out(spark: SparkSession) -> None:
    rows = rows_of(FAN_OUT, given_facts(spark, ATTEMPTS, EVENTS))
    assert [tuple(row.values()) for row in rows] == [
        (YESTERDAY, "leader", 2, 1),
        (TODAY, "coder", 1, 1),
    ]


def test_a_chain_belongs_to_the_day_on_which_it_began(spark: SparkSession) -> None:
    facts = given_facts(spark, ATTEMPTS)
    assert [tuple(row.values()) for row in rows_of(CHAINS, facts)] == [
        (YESTERDAY, 2, "slack_1", 1, 5, 3, 2_000_000, 67_000),
        (TODAY, 0, "slack_2", 1, 1, 1, 100_000, 50),
    ]
    assert answer(HANDOFFS, "conversations", facts) == [
        ("slack_1", YESTERDAY, 2, 5, 3, 2.0, 67_000),
        ("slack_2", TODAY, 0, 1, 1, 0.1, 50),
    ]


def test_conversations_that_are_not_among_the_costliest_are_in_the_sum(spark: SparkSession) -> None:
    many = [
        run(f"slack_{number:02}", "leader", 0, MIDNIGHT - 59_000 + number, cost=number / 10)
        for number in range(COSTLIEST + 3)
    ]
    rows = rows_of(CHAINS, given_facts(spark, many))
    others, *costliest = rows
    assert [row["conversation_id"] for row in costliest] == [
        f"slack_{number:02}" for number in range(3, COSTLIEST + 3)
    ]
    duration = 3 * 1000 + 0 + 1 + 2
    assert tuple(others.values()) == (YESTERDAY, 0, None, 3, 3, 3, 300_000, duration)
    ((depth, conversations, runs, _, _, cost, average, _),) = answer(
        HANDOFFS, "depths", given_facts(spark, many)
    )
    assert (depth, conversations, runs) == (0, COSTLIEST + 3, COSTLIEST + 3)
    assert (cost, average) == (25.3, 1.1)
