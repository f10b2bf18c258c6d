"""A database with a long past and a long queue, made with a few statements of SQL."""

from __future__ import annotations

from sqlalchemy import Connection, text

from bullpen.core.message import SEPARATOR
from bullpen.core.models import MESSAGES_ARCHIVE
from bullpen.core.queue.lanes import create_lane
from bullpen.core.store.base import Store
from tests.stores import START

AGENTS = 20
IDLE = 2_000
"""Agents that have nothing to do: a company so large that the planner has a choice."""

NUMBERS = {
    "sqlite": (
        "WITH RECURSIVE numbers(n) AS"
        " (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)"
    ),
    "postgresql": "WITH numbers(n) AS (SELECT generate_series(1, :count))",
}

MESSAGES = """
INSERT INTO messages (
    message_id, channel, sender, message, agent, status, retry_count, crash_count, conversation_id,
    parent_id, hop, batch_key, priority, sort_key, ready, due_at, available_at, deadline,
    created_at, updated_at
) {numbers}
SELECT :prefix || n, 'api', 'ada', 'hello', 'agent' || (n % :agents), :status, 0, 0,
    :prefix || (n / 4), CASE WHEN n % 4 = 0 THEN NULL ELSE :prefix || (n / 4) END, n % 4, 'api',
    2, :start + n, {ready}, :start + n, :start + n,
    CASE WHEN n % 50 = 0 THEN :start + 99999999 END, :start, :start + n
FROM numbers
"""

_ALL = [column.name for column in MESSAGES_ARCHIVE.c]
_COLUMNS = [each for each in _ALL if each not in ("id", "message_id")]
ARCHIVED = f"""
INSERT INTO messages_archive (id, message_id, {", ".join(_COLUMNS)})
SELECT 10000000 + id, 'old' || message_id, {", ".join(_COLUMNS)}
FROM messages WHERE status = 'completed' AND id % 8 = 0
"""
RECEIPTS = """
INSERT INTO receipts (channel, event_id, message_id, created_at)
SELECT channel, 'Ev' || id, message_id, created_at FROM messages WHERE id % 8 = 0
"""

RESPONSES = """
INSERT INTO responses (
    message_id, channel, sender, message, original_message, agent, status, conversation_id,
    reply_to, seq, delivery_attempts, parts_sent, sending, possible_duplicate, available_at,
    expires_at, recover_at, tell_at, created_at, acked_at
) {numbers}
SELECT 'asked' || n, 'channel' || (n % 10), 'ada', 'hello', '', 'agent3',
    CASE WHEN n % 50 = 0 THEN 'unknown' WHEN n % 10 = 1 THEN 'pending' ELSE 'acked' END,
    'asked' || n, 'C' || n || :separator || :separator, 0, 1, 0, {no}, {no}, :start + n,
    :start + 99999999, CASE WHEN n % 100 = 0 THEN :start + n END,
    CASE WHEN n % 100 = 0 THEN :start + n END, :start, CASE WHEN n % 10 > 1 THEN :start + n END
FROM numbers
"""
CHATS = """
INSERT INTO chats (channel, chat, direct, name, code, code_expires_at, created_at, updated_at)
{numbers}
SELECT 'channel' || (n % 10), 'C' || n, {no}, 'general', CASE WHEN n % 100 = 0 THEN 'CODE' END,
    CASE WHEN n % 100 = 0 THEN :start + n END, :start, :start + n
FROM numbers
"""
SENDERS = """
INSERT INTO senders (channel, sender_id, name, tier, code, code_expires_at, first_at, last_at)
{numbers}
SELECT 'channel' || (n % 10), 'U' || n, 'ada', CASE WHEN n % 10 > 0 THEN 'member' END,
    CASE WHEN n % 100 = 0 THEN 'CODE' END, CASE WHEN n % 100 = 0 THEN :start + n END, :start,
    :start + n
FROM numbers
"""

HEADS = """
UPDATE lanes SET
    pending = (SELECT count(*) FROM messages
        WHERE messages.agent = lanes.agent AND status = 'pending'),
    head_key = (SELECT min(sort_key) FROM messages
        WHERE messages.agent = lanes.agent AND status = 'pending' AND ready)
WHERE agent IN (SELECT DISTINCT agent FROM messages)
"""


def fill(store: Store, finished: int, waiting: int, idle: int = IDLE) -> None:
    """Have so many messages done and waiting, evenly over the agents, and up-to-date statistics."""
    with store.write() as tx:
        for agent in range(AGENTS + idle):
            create_lane(tx, f"agent{agent}")
    with store.engine.begin() as connection:
        _messages(connection, store.dialect, "done", "completed", finished)
        _messages(connection, store.dialect, "dead", "dead", waiting // 50)
        _messages(connection, store.dialect, "late", "pending", waiting // 50, ready=False)
        _messages(connection, store.dialect, "wait", "pending", waiting - waiting // 50)
        connection.execute(text(ARCHIVED))
        connection.execute(text(RECEIPTS))
        connection.execute(text(HEADS))
        for sql in (RESPONSES, CHATS, SENDERS):
            _channels(connection, store.dialect, sql, waiting)
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE" if store.dialect == "postgresql" else "ANALYZE"))


def _channels(connection: Connection, dialect: str, sql: str, count: int) -> None:
    no = "false" if dialect == "postgresql" else "0"
    given = {"count": count, "start": START, "separator": SEPARATOR}
    wanted = sql.format(numbers=NUMBERS[dialect], no=no)
    if dialect == "postgresql":
        wanted = wanted.replace(":separator", "CAST(:separator AS text)")
        wanted = wanted.replace(":start", "CAST(:start AS bigint)")
    values = {name: value for name, value in given.items() if f":{name}" in wanted}
    connection.execute(text(wanted), values)


def _messages(
    connection: Connection, dialect: str, prefix: str, status: str, count: int, ready: bool = True
) -> None:
    # A delay that is not over: what waits for its time waits far in the future.
    start = START if ready else START + 10**10
    sql = MESSAGES.format(numbers=NUMBERS[dialect], ready="true" if ready else "false")
    given = {
        "count": count,
        "prefix": prefix,
        "agents": AGENTS,
        "status": status,
        "start": start,
    }
    if dialect == "postgresql":
        sql = sql.replace(":prefix", "CAST(:prefix AS text)").replace(
            ":status", "CAST(:status AS text)"
        )
    connection.execute(text(sql), given)
