"""The tables of all reports by DuckDB: facts landed as Parquet by date, then one query for each.

A process of its own: `python -m tests.bench.peers.reports_duckdb URL DIRECTORY ZONE`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.reports.facts.read import RANGE_ROWS, IdRange, StoreAddress, arrow_schema, read_range
from bullpen.reports.facts.tables import ATTEMPTS, EVENTS, FactTable
from tests.bench.process_tree import TreeMeter

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

THREADS = 2
PRELUDE = """
CREATE MACRO there(ms) AS timezone('{zone}', timezone('UTC', make_timestamp(ms * 1000)));
CREATE MACRO on_day(ms) AS CAST(there(ms) AS DATE);
CREATE MACRO in_hour(ms) AS CAST(hour(there(ms)) AS INTEGER);
CREATE MACRO bucket(ms) AS CASE WHEN ms < 64 THEN ms
    ELSE (length(bin(ms)) - 6) * 32 + (ms >> (length(bin(ms)) - 6)) END;
CREATE VIEW a AS SELECT *, on_day(finished_at) AS day, in_hour(finished_at) AS hour,
    CAST(floor(cost * 1000000 + 0.5) AS BIGINT) AS micros,
    greatest(finished_at - started_at, 0) AS run_time
    FROM read_parquet('{directory}/attempts/*/*.parquet');
CREATE VIEW e AS SELECT *, on_day(created_at) AS day, in_hour(created_at) AS hour
    FROM read_parquet('{directory}/events/*/*.parquet');
CREATE TABLE hours AS SELECT on_day(since) AS day, in_hour(since) AS hour, since,
    since + 3600000 AS until FROM (SELECT unnest(range(
        (SELECT min(claimed_at) // 3600000 * 3600000 - 172800000 FROM a),
        (SELECT max(finished_at) + 172800000 FROM a), 3600000)) AS since);
CREATE VIEW durations AS
    SELECT day, hour, agent, 'waiting' AS stage, greatest(claimed_at - available_at, 0) AS ms
    FROM a WHERE available_at IS NOT NULL
    UNION ALL SELECT day, hour, agent, 'running', run_time FROM a
    UNION ALL SELECT day, hour, agent, 'delivering', waited FROM e
    WHERE type = 'response_delivered' AND waited IS NOT NULL;
"""

USAGE = """count(*) AS runs, sum(messages) AS messages, sum(input_tokens) AS input_tokens,
    sum(output_tokens) AS output_tokens, sum(micros) AS cost_micros,
    sum(CASE WHEN outcome = 'completed' THEN 0 ELSE micros END) AS failed_cost_micros,
    sum(run_time) AS run_time"""

TABLES: Mapping[str, str] = {
    "throughput": """
        SELECT day, hour, agent, team_id, channel, sum(came) AS messages_in,
               sum(done) AS messages_done, sum(died) AS messages_dead, sum(run) AS runs,
               sum(bad) AS runs_failed
        FROM (
            SELECT day, hour, agent, team_id, channel,
                   CAST(type = 'message_enqueued' AS INTEGER) AS came, 0 AS done,
                   CAST(type = 'message_dead' AS INTEGER) AS died, 0 AS run, 0 AS bad
            FROM e WHERE type IN ('message_enqueued', 'message_dead')
            UNION ALL
            SELECT day, hour, agent, team_id, channel, 0,
                   CASE WHEN outcome = 'completed' THEN messages ELSE 0 END, 0, 1,
                   CAST(outcome IN ('failed', 'crashed') AS INTEGER)
            FROM a
        ) GROUP BY ALL
    """,
    "concurrency": """
        WITH parts AS (
            SELECT agent, claimed_at, finished_at,
                   unnest(range(claimed_at // 3600000, (finished_at - 1) // 3600000 + 1))
                   * 3600000 AS since
            FROM a WHERE claimed_at < finished_at
        ), days AS (SELECT day, sum(until - since) AS day_length FROM hours GROUP BY day),
        lengths AS (
            SELECT day, hour, sum(until - since) AS hour_length FROM hours GROUP BY day, hour
        )
        SELECT day, hour, agent, busy, hour_length, day_length FROM (
            SELECT on_day(since) AS day, in_hour(since) AS hour, agent,
                   sum(least(finished_at, since + 3600000) - greatest(claimed_at, since)) AS busy
            FROM parts GROUP BY ALL
        ) JOIN lengths USING (day, hour) JOIN days USING (day)
    """,
    "peaks": """
        SELECT on_day(moment) AS day, in_hour(moment) AS hour, max(together) AS highest FROM (
            SELECT moment, change,
                   sum(change) OVER (ORDER BY moment, change ROWS UNBOUNDED PRECEDING) AS together
            FROM (
                SELECT claimed_at AS moment, 1 AS change FROM a WHERE claimed_at < finished_at
                UNION ALL SELECT finished_at, -1 FROM a WHERE claimed_at < finished_at
                UNION ALL SELECT since, 0 FROM hours
            )
        ) WHERE change >= 0 GROUP BY ALL HAVING max(together) > 0
    """,
    "latency": """
        SELECT day, hour, agent, stage, count, total, longest,
               places[1] AS p50, places[2] AS p90, places[3] AS p95, places[4] AS p99
        FROM (
            SELECT day, hour, agent, stage, count(*) AS count, sum(ms) AS total,
                   max(ms) AS longest, quantile_disc(ms, [0.5, 0.9, 0.95, 0.99]) AS places
            FROM durations GROUP BY day, hour, agent, stage
        )
    """,
    "latency_buckets": """
        SELECT day, agent, stage, bucket(ms) AS bucket, count(*) AS count
        FROM durations GROUP BY ALL
    """,
    "retries": """
        SELECT day, agent, attempt, outcome, error_kind, count(*) AS runs,
               sum(messages) AS messages, sum(dead) AS dead, sum(run_time) AS run_time,
               sum(coalesce(wait, 0)) AS wait
        FROM a GROUP BY ALL
    """,
    "retries_by_hand": """
        SELECT day, agent, count(*) AS messages FROM e WHERE type = 'message_retried' GROUP BY ALL
    """,
    "failures": """
        SELECT day, fingerprint, kind, agent, sender_id,
               substr(max({{'moment': moment, 'error': error}}).error, 1, 300) AS error,
               sum(run) AS runs, sum(death) AS dead, min(moment) AS first_at,
               max(moment) AS last_at
        FROM (
            SELECT day, fingerprint, error_kind AS kind, agent, sender_id, error,
                   finished_at AS moment, 1 AS run, 0 AS death
            FROM a WHERE fingerprint IS NOT NULL
            UNION ALL
            SELECT day, fingerprint, kind, agent, sender_id, error, created_at, 0, 1
            FROM e WHERE type = 'message_dead' AND fingerprint IS NOT NULL
        ) GROUP BY ALL
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
                   CAST(outcome IN ('failed', 'crashed') AS INTEGER), micros, run_time
            FROM a
        ) WHERE from_agent IS NOT NULL GROUP BY ALL
    """,
    "fan_out": """
        SELECT day, from_agent, handoffs, count(*) AS runs FROM (
            SELECT day, from_agent, parent_id, count(*) AS handoffs FROM e
            WHERE type = 'message_enqueued' AND from_agent IS NOT NULL AND parent_id IS NOT NULL
            GROUP BY ALL
        ) GROUP BY ALL
    """,
    "chains": """
        SELECT day, depth, CASE WHEN place <= 20 THEN conversation_id END AS conversation_id,
               count(*) AS conversations, sum(runs) AS runs, sum(agents) AS agents,
               sum(micros) AS cost_micros, sum(duration) AS duration
        FROM (
            SELECT *, row_number() OVER (
                PARTITION BY day, depth ORDER BY micros DESC, runs DESC, conversation_id DESC
            ) AS place FROM (
                SELECT on_day(conversation_at) AS day, conversation_id, max(hop) AS depth,
                       count(*) AS runs, count(DISTINCT agent) AS agents, sum(micros) AS micros,
                       greatest(max(finished_at) - min(conversation_at), 0) AS duration
                FROM a WHERE conversation_at IS NOT NULL GROUP BY ALL
            )
        ) GROUP BY 1, 2, 3
    """,
    "usage": f"""
        SELECT day, agent, provider, model, team_id, channel, {USAGE} FROM a GROUP BY ALL
    """,
    "usage_by_sender": f"SELECT day, channel, sender_id, sender, {USAGE} FROM a GROUP BY ALL",
    "people": """
        SELECT day, channel, sender_id, sender, count(*) AS messages,
               sum(CASE WHEN posted IS NULL AND message_id = conversation_id THEN 1 ELSE 0 END)
               + count(DISTINCT posted) AS conversations,
               min(created_at) AS first_at, max(created_at) AS last_at
        FROM (
            SELECT *, CASE WHEN starts_with(conversation_id, 'chatroom_')
                   THEN conversation_id END AS posted
            FROM e WHERE type = 'message_enqueued' AND from_agent IS NULL
            AND channel NOT IN ('heartbeat', 'schedule')
            AND NOT starts_with(message_id, 'schedule_')
        ) GROUP BY day, channel, sender_id, sender
    """,
    "delivery": """
        SELECT day, channel, count(*) FILTER (type = 'response_delivered') AS delivered,
               count(*) FILTER (type = 'response_dead') AS dead,
               count(*) FILTER (type = 'response_unknown') AS unknown,
               count(*) FILTER (type = 'response_retried') AS retried,
               count(*) FILTER (type = 'response_delivered' AND tries = 1) AS first_try,
               coalesce(sum(tries) FILTER (type = 'response_delivered'), 0) AS tries,
               coalesce(sum(parts) FILTER (type = 'response_delivered'), 0) AS parts,
               coalesce(sum(waited) FILTER (type = 'response_delivered'), 0) AS waited,
               quantile_disc(waited, 0.5) FILTER (type = 'response_delivered') AS waited_p50,
               quantile_disc(waited, 0.95) FILTER (type = 'response_delivered') AS waited_p95,
               max(waited) FILTER (type = 'response_delivered') AS waited_max
        FROM e WHERE starts_with(type, 'response_') GROUP BY day, channel
    """,
    "delivery_times": """
        SELECT day, channel, bucket(waited) AS bucket, count(*) AS responses
        FROM e WHERE type = 'response_delivered' AND waited IS NOT NULL GROUP BY ALL
    """,
    "delivery_errors": """
        SELECT day, channel, substr(type, 10) AS outcome,
               regexp_replace(substr(error, 1, 300), '[0-9]+', '#', 'g') AS error,
               count(*) AS responses, max(created_at) AS last_at
        FROM e WHERE type IN ('response_dead', 'response_unknown') GROUP BY ALL
    """,
}
"""The same rows as those of the reports."""


def land(database: duckdb.DuckDBPyConnection, address: StoreAddress, directory: Path) -> None:
    """Copy the facts to files, by UTC date."""
    for table in (ATTEMPTS, EVENTS):
        stream = fact_stream(address, table)
        database.register("stream", stream)
        database.execute(f"""
            COPY (
                SELECT *, CAST(make_timestamp({table.time} * 1000) AS DATE) AS date FROM stream
            ) TO '{directory / table.name}' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (date))
        """)
        database.unregister("stream")


def fact_stream(address: StoreAddress, table: FactTable) -> pa.RecordBatchReader:
    """The landed rows of a table, read in ranges as the job reads them."""
    import pyarrow as pa

    columns = table.landed_columns
    with address.open() as statement:
        statement.set_sql_query(f"SELECT max(id) AS last FROM {table.name}")
        stream, _ = statement.execute_query()
        found = pa.RecordBatchReader.from_stream(stream).read_all()
    last = found["last"][0].as_py() or 0

    def batches() -> Iterator[pa.RecordBatch]:
        names = [each.name for each in columns]
        for first in range(1, last + 1, RANGE_ROWS):
            ids = IdRange(first, min(last, first + RANGE_ROWS - 1))
            yield from read_range(address, table, names, ids, table.landed_rows)

    return pa.RecordBatchReader.from_batches(arrow_schema(columns), batches())


def compute(database: duckdb.DuckDBPyConnection, directory: Path, zone: str) -> None:
    """Write each table of the reports to a file."""
    database.execute(PRELUDE.format(zone=zone, directory=directory))
    results = directory / "results"
    results.mkdir()
    for name, sql in TABLES.items():
        query = sql.format() if "{{" in sql else sql
        database.execute(f"COPY ({query}) TO '{results / name}.parquet' (FORMAT parquet)")


def main(url: str, directory: str, zone: str) -> None:
    """Land, compute, and print what both used."""
    import duckdb

    with TreeMeter() as meter, duckdb.connect(config={"threads": THREADS}) as database:
        land(database, StoreAddress(url), Path(directory))
        landed = meter.used()
        compute(database, Path(directory), zone)
        done = meter.used()
    used = {"land": landed.cpu, "cpu": done.cpu, "wall": done.wall, "memory": meter.memory}
    print(json.dumps(used))


if __name__ == "__main__":
    main(*sys.argv[1:])
