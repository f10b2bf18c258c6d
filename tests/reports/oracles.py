"""The rows of each table of the reports by plain SQL over the store, the same on both databases.

Nothing is shared with the transforms. Local days and hours come from `zoneinfo`, percentiles from
`row_number()`, buckets from the powers of two, and a day is the number of days since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import text

from bullpen.core.clock import DAY, MINUTE
from bullpen.core.models import ATTEMPTS
from bullpen.core.store.base import Store

Rows = list[tuple[Any, ...]]

QUARTER = 15 * MINUTE
EPOCH = date(1970, 1, 1)

TEXT_FIELDS = (
    *("channel", "sender", "sender_id", "from_agent", "parent_id", "team_id"),
    *("kind", "error", "fingerprint"),
)
NUMBER_FIELDS = ("hop", "available_at", "response", "tries", "waited", "parts")

KNOWN = {
    "available_at": "coalesce(available_at, enqueued_at)",
    "conversation_at": "coalesce(conversation_at, enqueued_at)",
    "attempt": "coalesce(attempt, retry_count + 1)",
}
"""The best known values of columns that rows from before version 0.2 lack."""


@dataclass(frozen=True, slots=True)
class Hour:
    """A time without a change of the local day and hour. An hour can be two of them."""

    day: date
    hour: int
    since: int
    until: int


def local_hours(zone: str, first: int, last: int) -> list[Hour]:
    """The local hours from a time to another, by quarters."""
    owner = ZoneInfo(zone)

    def local(at: int) -> tuple[date, int]:
        there = datetime.fromtimestamp(at // 1000, UTC).astimezone(owner)
        return there.date(), there.hour

    quarters = range(first // QUARTER * QUARTER, last, QUARTER)
    hours = []
    for (day, hour), group in groupby(quarters, local):
        found = list(group)
        hours.append(Hour(day, hour, found[0], found[-1] + QUARTER))
    return hours


class Oracle:
    """Computes tables from a store."""

    def __init__(self, store: Store, zone: str) -> None:
        self._store = store
        self._sqlite = store.dialect == "sqlite"
        first, last = self._span()
        self.hours = local_hours(zone, first - 2 * DAY, last + 2 * DAY)

    def rows(self, sql: str) -> Rows:
        """The rows of a query over the tables of the prelude below."""
        words = {
            "bytes": "BINARY" if self._sqlite else '"C"',
            "least": "min" if self._sqlite else "least",
            "greatest": "max" if self._sqlite else "greatest",
            "concat": "group_concat" if self._sqlite else "string_agg",
        }
        with self._store.engine.connect() as connection:
            found = connection.execute(text(self._prelude() + sql.format_map(words)))
            return [
                tuple(_plain(name, value) for name, value in row._mapping.items()) for row in found
            ]

    def table(self, name: str) -> Rows:
        """The rows of a table of the reports."""
        return self.rows(TABLES[name])

    def _floor(self, expression: str) -> str:
        if self._sqlite:  # no costs are negative
            return f"CAST({expression} AS INTEGER)"
        return f"CAST(floor({expression}) AS BIGINT)"

    def _span(self) -> tuple[int, int]:
        sql = """
            SELECT min(at), max(at) FROM (
                SELECT claimed_at AS at FROM attempts UNION ALL SELECT finished_at FROM attempts
                UNION ALL SELECT enqueued_at FROM attempts
                UNION ALL SELECT conversation_at FROM attempts
                UNION ALL SELECT created_at FROM events
            ) times
        """
        with self._store.engine.connect() as connection:
            first, last = connection.execute(text(sql)).one()
        return first, last

    def _prelude(self) -> str:
        hours = ", ".join(
            f"({(each.day - EPOCH).days}, {each.hour}, {each.since}, {each.until})"
            for each in self.hours
        )
        powers = ", ".join(f"({bits}, {2 ** (bits - 1)})" for bits in range(1, 50))
        fields = ", ".join([*map(self._text, TEXT_FIELDS), *map(self._number, NUMBER_FIELDS)])
        attempts = ", ".join(
            f"{KNOWN[each.name]} AS {each.name}" if each.name in KNOWN else each.name
            for each in ATTEMPTS.c
        )
        return f"""
            WITH hours(day, hour, since, until) AS (VALUES {hours}),
            powers(bits, power) AS (VALUES {powers}),
            lengths AS (
                SELECT day, hour, sum(until - since) AS hour_length FROM hours GROUP BY day, hour
            ),
            a AS (
                SELECT {attempts}, day, hour FROM attempts
                JOIN hours ON finished_at >= since AND finished_at < until
            ),
            e AS (
                SELECT id, type, agent, conversation_id, message_id, created_at, {fields}, day, hour
                FROM events JOIN hours ON created_at >= since AND created_at < until
            ),
            durations AS (
                SELECT day, hour, agent, 'waiting' AS stage,
                       {self._longest("claimed_at - available_at", "0")} AS ms
                FROM a WHERE available_at IS NOT NULL
                UNION ALL
                SELECT day, hour, agent, 'running',
                       {self._longest("finished_at - started_at", "0")} FROM a
                UNION ALL
                SELECT day, hour, agent, 'delivering', waited
                FROM e WHERE type = 'response_delivered' AND waited IS NOT NULL
            ),
            numbered AS (
                SELECT durations.*, CASE WHEN ms < 64 THEN ms ELSE (
                    SELECT (bits - 6) * 32 + ms / (power / 32) FROM powers
                    WHERE power <= ms AND ms < power * 2
                ) END AS bucket FROM durations
            ),
            runs AS (
                SELECT a.*, {self._floor("cost * 1000000 + 0.5")} AS micros,
                       {self._longest("finished_at - started_at", "0")} AS run_time
                FROM a
            )
        """

    def _longest(self, *values: str) -> str:
        return f"{'max' if self._sqlite else 'greatest'}({', '.join(values)})"

    def _text(self, name: str) -> str:
        if self._sqlite:
            return f"data ->> '$.{name}' AS {name}"
        return f"CAST(data AS JSON) ->> '{name}' AS {name}"

    def _number(self, name: str) -> str:
        if self._sqlite:
            return f"CAST(data ->> '$.{name}' AS INTEGER) AS {name}"
        return f"CAST(CAST(data AS JSON) ->> '{name}' AS BIGINT) AS {name}"


def _plain(name: str, value: object) -> object:
    if name in ("day", "week"):
        assert isinstance(value, int)
        return EPOCH + timedelta(days=value)
    return int(value) if isinstance(value, Decimal) else value


PERCENTILES = ", ".join(
    f"min(CASE WHEN place * 100 >= number * {share} THEN ms END) AS p{share}"
    for share in (50, 90, 95, 99)
)

USAGE = """
    count(*) AS runs, sum(messages) AS messages, sum(input_tokens) AS input_tokens,
    sum(output_tokens) AS output_tokens, sum(micros) AS cost_micros,
    sum(CASE WHEN outcome = 'completed' THEN 0 ELSE micros END) AS failed_cost_micros,
    sum(run_time) AS run_time
"""

TABLES: Mapping[str, str] = {
    "throughput": """
        SELECT day, hour, agent, team_id, channel, sum(came) AS messages_in,
               sum(done) AS messages_done, sum(died) AS messages_dead, sum(run) AS runs,
               sum(bad) AS runs_failed
        FROM (
            SELECT day, hour, agent, team_id, channel, 1 AS came, 0 AS done, 0 AS died, 0 AS run,
                   0 AS bad
            FROM e WHERE type = 'message_enqueued'
            UNION ALL
            SELECT day, hour, agent, team_id, channel, 0, 0, 1, 0, 0
            FROM e WHERE type = 'message_dead'
            UNION ALL
            SELECT day, hour, agent, team_id, channel, 0,
                   CASE WHEN outcome = 'completed' THEN messages ELSE 0 END, 0, 1,
                   CASE WHEN outcome IN ('failed', 'crashed') THEN 1 ELSE 0 END
            FROM a
        ) happened GROUP BY day, hour, agent, team_id, channel
    """,
    "concurrency": """
        SELECT shares.day, shares.hour, agent, busy, hour_length,
               (SELECT sum(until - since) FROM hours WHERE hours.day = shares.day) AS day_length
        FROM (
            SELECT hours.day, hours.hour, agent,
                   sum({least}(finished_at, until) - {greatest}(claimed_at, since)) AS busy
            FROM hours JOIN attempts
            ON claimed_at < until AND finished_at > since AND claimed_at < finished_at
            GROUP BY hours.day, hours.hour, agent
        ) shares
        JOIN lengths ON lengths.day = shares.day AND lengths.hour = shares.hour
    """,
    "peaks": """
        SELECT day, hour, max(together) AS highest FROM (
            SELECT day, hour, (
                SELECT count(*) FROM attempts
                WHERE attempts.claimed_at <= moments.at AND attempts.finished_at > moments.at
            ) AS together
            FROM (
                SELECT day, hour, since AS at FROM hours
                UNION ALL
                SELECT hours.day, hours.hour, claimed_at FROM hours
                JOIN attempts ON claimed_at >= since AND claimed_at < until
            ) moments
        ) counted GROUP BY day, hour HAVING max(together) > 0
    """,
    "latency": f"""
        SELECT day, hour, agent, stage, max(number) AS count, sum(ms) AS total,
               max(ms) AS longest, {PERCENTILES}
        FROM (
            SELECT durations.*,
                   row_number() OVER (PARTITION BY day, hour, agent, stage ORDER BY ms) AS place,
                   count(*) OVER (PARTITION BY day, hour, agent, stage) AS number
            FROM durations
        ) placed GROUP BY day, hour, agent, stage
    """,
    "latency_buckets": """
        SELECT day, agent, stage, bucket, count(*) AS count
        FROM numbered GROUP BY day, agent, stage, bucket
    """,
    "retries": """
        SELECT day, agent, attempt, outcome, error_kind, count(*) AS runs,
               sum(messages) AS messages, sum(dead) AS dead, sum(run_time) AS run_time,
               sum(CASE WHEN wait IS NULL THEN 0 ELSE wait END) AS wait
        FROM runs GROUP BY day, agent, attempt, outcome, error_kind
    """,
    "retries_by_hand": """
        SELECT day, agent, count(*) AS messages
        FROM e WHERE type = 'message_retried' GROUP BY day, agent
    """,
    "failures": """
        SELECT day, fingerprint, kind, agent, sender_id,
               max(CASE WHEN place = 1 THEN substr(error, 1, 300) END) AS error,
               sum(run) AS runs, sum(death) AS dead, min(at) AS first_at, max(at) AS last_at
        FROM (
            SELECT errors.*, row_number() OVER (
                PARTITION BY day, fingerprint, kind, agent, sender_id
                ORDER BY at DESC, error COLLATE {bytes} DESC
            ) AS place
            FROM (
                SELECT day, fingerprint, error_kind AS kind, agent, sender_id, error,
                       finished_at AS at, 1 AS run, 0 AS death
                FROM a WHERE fingerprint IS NOT NULL
                UNION ALL
                SELECT day, fingerprint, kind, agent, sender_id, error, created_at, 0, 1
                FROM e WHERE type = 'message_dead' AND fingerprint IS NOT NULL
            ) errors
        ) placed GROUP BY day, fingerprint, kind, agent, sender_id
    """,
    "handoffs": """
        SELECT day, from_agent, agent, team_id, channel, sum(handed) AS handoffs,
               sum(run) AS runs, sum(bad) AS runs_failed, sum(micros) AS cost_micros,
               sum(run_time) AS run_time
        FROM (
            SELECT day, from_agent, agent, team_id, channel, 1 AS handed, 0 AS run, 0 AS bad,
                   0 AS micros, 0 AS run_time
            FROM e WHERE type = 'message_enqueued'
            UNION ALL
            SELECT day, from_agent, agent, team_id, channel, 0, 1,
                   CASE WHEN outcome IN ('failed', 'crashed') THEN 1 ELSE 0 END, micros, run_time
            FROM runs
        ) happened WHERE from_agent IS NOT NULL
        GROUP BY day, from_agent, agent, team_id, channel
    """,
    "fan_out": """
        SELECT day, from_agent, handoffs, count(*) AS runs FROM (
            SELECT day, from_agent, parent_id, count(*) AS handoffs FROM e
            WHERE type = 'message_enqueued' AND from_agent IS NOT NULL AND parent_id IS NOT NULL
            GROUP BY day, from_agent, parent_id
        ) parents GROUP BY day, from_agent, handoffs
    """,
    "chains": """
        SELECT day, depth, shown AS conversation_id, count(*) AS conversations, sum(runs) AS runs,
               sum(agents) AS agents, sum(micros) AS cost_micros, sum(duration) AS duration
        FROM (
            SELECT ranked.*, CASE WHEN place <= 20 THEN conversation_id END AS shown FROM (
                SELECT chains.*, row_number() OVER (
                    PARTITION BY day, depth
                    ORDER BY micros DESC, runs DESC, conversation_id COLLATE {bytes} DESC
                ) AS place FROM (
                    SELECT began.day, conversation_id, max(hop) AS depth,
                           count(*) AS runs, count(DISTINCT agent) AS agents, sum(micros) AS micros,
                           {greatest}(max(finished_at) - min(conversation_at), 0) AS duration
                    FROM runs JOIN hours AS began
                    ON conversation_at >= began.since AND conversation_at < began.until
                    GROUP BY began.day, conversation_id
                ) chains
            ) ranked
        ) labelled GROUP BY day, depth, shown
    """,
    "usage": f"""
        SELECT day, agent, provider, model, team_id, channel, {USAGE}
        FROM runs GROUP BY day, agent, provider, model, team_id, channel
    """,
    "usage_by_sender": f"""
        SELECT day, channel, sender_id, sender, {USAGE}
        FROM runs GROUP BY day, channel, sender_id, sender
    """,
    "people": """
        SELECT day, channel, sender_id, sender, count(*) AS messages,
               sum(CASE WHEN posted IS NULL AND message_id = conversation_id
                   THEN 1 ELSE 0 END) + count(DISTINCT posted) AS conversations,
               min(created_at) AS first_at, max(created_at) AS last_at
        FROM (
            SELECT e.*, CASE WHEN substr(conversation_id, 1, 9) = 'chatroom_'
                   THEN conversation_id END AS posted
            FROM e WHERE type = 'message_enqueued' AND from_agent IS NULL
            AND channel NOT IN ('heartbeat', 'schedule')
            AND substr(message_id, 1, 9) <> 'schedule_'
        ) posts GROUP BY day, channel, sender_id, sender
    """,
    "delivery": """
        SELECT day, channel,
               sum(CASE WHEN type = 'response_delivered' THEN 1 ELSE 0 END) AS delivered,
               sum(CASE WHEN type = 'response_dead' THEN 1 ELSE 0 END) AS dead,
               sum(CASE WHEN type = 'response_unknown' THEN 1 ELSE 0 END) AS unknown,
               sum(CASE WHEN type = 'response_retried' THEN 1 ELSE 0 END) AS retried,
               sum(CASE WHEN type = 'response_delivered' AND tries = 1 THEN 1 ELSE 0 END)
               AS first_try,
               coalesce(sum(CASE WHEN type = 'response_delivered' THEN tries END), 0) AS tries,
               coalesce(sum(CASE WHEN type = 'response_delivered' THEN parts END), 0) AS parts,
               coalesce(sum(ms), 0) AS waited,
               min(CASE WHEN place * 100 >= number * 50 THEN ms END) AS waited_p50,
               min(CASE WHEN place * 100 >= number * 95 THEN ms END) AS waited_p95,
               max(ms) AS waited_max
        FROM (
            SELECT timed.*, count(ms) OVER (PARTITION BY day, channel) AS number,
                   row_number() OVER (
                       PARTITION BY day, channel ORDER BY ms IS NULL, ms
                   ) AS place
            FROM (
                SELECT e.*, CASE WHEN type = 'response_delivered' THEN waited END AS ms
                FROM e WHERE type LIKE 'response_%'
            ) timed
        ) placed GROUP BY day, channel
    """,
    "delivery_times": """
        SELECT day, channel, CASE WHEN waited < 64 THEN waited ELSE (
                   SELECT (bits - 6) * 32 + waited / (power / 32) FROM powers
                   WHERE power <= waited AND waited < power * 2
               ) END AS bucket, count(*) AS responses
        FROM e WHERE type = 'response_delivered' AND waited IS NOT NULL
        GROUP BY day, channel, bucket
    """,
    # All errors of deliveries in the histories differ in two numbers only.
    "delivery_errors": """
        SELECT day, channel, substr(type, 10) AS outcome,
               CASE WHEN error LIKE 'HTTP %' THEN 'HTTP # after # s' END AS error,
               count(*) AS responses, max(created_at) AS last_at
        FROM e WHERE type IN ('response_dead', 'response_unknown')
        GROUP BY day, channel, type, CASE WHEN error LIKE 'HTTP %' THEN 'HTTP # after # s' END
    """,
}
