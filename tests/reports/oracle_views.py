"""The rows of views of the reports by plain SQL over the store; see `oracles.py`."""

from __future__ import annotations

from collections.abc import Mapping

from tests.reports.oracles import PERCENTILES, TABLES

THROUGHPUT = f"({TABLES['throughput']}) t"
LATENCY = f"({TABLES['latency']}) t"

COUNTS = """
    sum(messages_in) AS messages_in, sum(messages_done) AS messages_done,
    sum(messages_dead) AS messages_dead, sum(runs) AS runs, sum(runs_failed) AS runs_failed
"""

HAS_FAILED = "outcome IN ('failed', 'crashed')"

RUNS = f"""
    count(*) AS runs, sum(CASE WHEN outcome = 'completed' THEN 1 ELSE 0 END) AS completed,
    sum(CASE WHEN {HAS_FAILED} THEN 1 ELSE 0 END) AS failed
"""

COSTS = f"""
    sum(dead) AS dead, sum(CASE WHEN {HAS_FAILED} THEN run_time ELSE 0 END) AS lost,
    sum(coalesce(wait, 0)) AS wait
"""

BY_HAND = f"""
    SELECT {{by}}, sum(run) AS runs, sum(completed) AS completed, sum(failed) AS failed,
           sum(dead) AS dead, sum(lost) AS lost, sum(wait) AS wait, sum(hand) AS by_hand
    FROM (
        SELECT {{by}}, 1 AS run, CASE WHEN outcome = 'completed' THEN 1 ELSE 0 END AS completed,
               CASE WHEN {HAS_FAILED} THEN 1 ELSE 0 END AS failed, dead,
               CASE WHEN {HAS_FAILED} THEN run_time ELSE 0 END AS lost,
               coalesce(wait, 0) AS wait, 0 AS hand
        FROM runs
        UNION ALL
        SELECT {{by}}, 0, 0, 0, 0, 0, 0, 1 FROM e WHERE type = 'message_retried'
    ) happened GROUP BY {{by}}
"""

ERRORS = """(
    SELECT day, fingerprint, error_kind AS kind, agent, sender_id, error, finished_at AS at,
           1 AS run, 0 AS death
    FROM a WHERE fingerprint IS NOT NULL
    UNION ALL
    SELECT day, fingerprint, kind, agent, sender_id, error, created_at, 0, 1
    FROM e WHERE type = 'message_dead' AND fingerprint IS NOT NULL
) errors"""

WEEKDAY = "(day + 3) % 7 + 1 AS weekday"  # 1970 began on a Thursday

VIEWS: Mapping[tuple[str, str], str] = {
    ("throughput", "days"): f"SELECT day, {COUNTS} FROM {THROUGHPUT} GROUP BY day",
    ("throughput", "agents"): f"SELECT agent, {COUNTS} FROM {THROUGHPUT} GROUP BY agent",
    ("throughput", "teams"): f"SELECT team_id, {COUNTS} FROM {THROUGHPUT} GROUP BY team_id",
    ("throughput", "channels"): f"SELECT channel, {COUNTS} FROM {THROUGHPUT} GROUP BY channel",
    ("throughput", "hours"): f"""
        SELECT weekday, hour, {COUNTS} FROM (SELECT t.*, {WEEKDAY} FROM {THROUGHPUT}) w
        GROUP BY weekday, hour
    """,
    ("throughput", "utilisation"): f"""
        SELECT day, agent, sum(busy) AS busy,
               CAST(sum(busy) AS DOUBLE PRECISION) / max(day_length) AS utilisation
        FROM ({TABLES["concurrency"]}) t GROUP BY day, agent
    """,
    ("throughput", "busy"): f"""
        SELECT t.day, t.hour, sum(busy) AS busy,
               CAST(sum(busy) AS DOUBLE PRECISION) / max(hour_length) AS concurrency,
               max(highest) AS highest
        FROM ({TABLES["concurrency"]}) t
        JOIN ({TABLES["peaks"]}) p ON p.day = t.day AND p.hour = t.hour
        GROUP BY t.day, t.hour
    """,
    ("latency", "heatmap"): f"""
        SELECT weekday, hour, count(*) AS count,
               CAST(sum(ms) AS DOUBLE PRECISION) / count(*) AS mean,
               max(ms) AS longest
        FROM (SELECT durations.*, {WEEKDAY} FROM durations) w
        WHERE stage = 'waiting' GROUP BY weekday, hour
    """,
    ("latency", "hours"): f"""
        SELECT day, hour, agent, stage, count,
               CAST(total AS DOUBLE PRECISION) / count AS mean, longest,
               p50, p90, p95, p99
        FROM {LATENCY}
    """,
    ("retries", "funnel"): f"""
        SELECT attempt, {RUNS},
               sum(CASE WHEN outcome IN ('released', 'cancelled') THEN 1 ELSE 0 END) AS other,
               {COSTS}
        FROM runs GROUP BY attempt
    """,
    ("retries", "success"): """
        SELECT attempt, count(*) AS completed,
               CAST(count(*) AS DOUBLE PRECISION) / (
                   SELECT count(*) FROM a WHERE outcome = 'completed'
               ) AS share
        FROM a WHERE outcome = 'completed' GROUP BY attempt
    """,
    ("retries", "agents"): BY_HAND.format(by="agent"),
    ("retries", "days"): BY_HAND.format(by="day"),
    ("retries", "kinds"): f"""
        SELECT error_kind, agent, count(*) AS failed, {COSTS}
        FROM runs WHERE {HAS_FAILED} GROUP BY error_kind, agent
    """,
    ("failures", "errors"): f"""
        SELECT fingerprint,
               (SELECT {{concat}}(kind, ', ') FROM (
                   SELECT DISTINCT kind FROM {ERRORS}
                   WHERE errors.fingerprint = grouped.fingerprint ORDER BY kind
               ) k) AS kinds,
               (SELECT substr(error, 1, 300) FROM {ERRORS}
                WHERE errors.fingerprint = grouped.fingerprint
                ORDER BY at DESC, error COLLATE {{bytes}} DESC LIMIT 1) AS error,
               runs, dead, agents, people, first_at, last_at
        FROM (
            SELECT fingerprint, sum(run) AS runs, sum(death) AS dead,
                   count(DISTINCT agent) AS agents, count(DISTINCT sender_id) AS people,
                   min(at) AS first_at, max(at) AS last_at
            FROM {ERRORS} GROUP BY fingerprint
        ) grouped
    """,
    ("failures", "days"): f"""
        SELECT day, kind, sum(run) AS runs, sum(death) AS dead,
               count(DISTINCT fingerprint) AS errors, count(DISTINCT agent) AS agents,
               count(DISTINCT sender_id) AS people
        FROM {ERRORS} GROUP BY day, kind
    """,
    ("failures", "agents"): f"""
        SELECT agent, sum(run) AS runs, sum(death) AS dead,
               count(DISTINCT fingerprint) AS errors, count(DISTINCT sender_id) AS people,
               max(at) AS last_at
        FROM {ERRORS} GROUP BY agent
    """,
}

EXACT_LATENCY = """
    SELECT {by}, stage, {percentiles} FROM (
        SELECT keyed.*,
               row_number() OVER (PARTITION BY {by}, stage ORDER BY ms) AS place,
               count(*) OVER (PARTITION BY {by}, stage) AS number
        FROM (SELECT durations.*, {weekday}, day - (day + 3) % 7 AS week FROM durations) keyed
    ) placed GROUP BY {by}, stage
"""


def exact_latency(by: str) -> str:
    """The exact percentiles of each stage, by `day`, `agent`, `weekday` or the `week` of a day."""
    return EXACT_LATENCY.format(by=by, percentiles=PERCENTILES, weekday=WEEKDAY)


LATENCY_VIEWS: Mapping[str, str] = {
    "days": exact_latency("day"),
    "agents": exact_latency("agent"),
    "weekdays": exact_latency("weekday"),
    "weeks": exact_latency("week"),
}
"""Views whose percentiles are those of buckets, so at most a 64th off."""
