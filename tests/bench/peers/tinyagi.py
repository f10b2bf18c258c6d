"""The write transactions of TinyAGI as a peer."""

import sqlite3
import time
from pathlib import Path
from random import getrandbits
from typing import Final

from . import stopwatch
from .durability import Durability, apply
from .payload import PAYLOAD

SCHEMA: Final = """
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id TEXT UNIQUE NOT NULL,
    channel TEXT NOT NULL,
    sender TEXT NOT NULL,
    sender_id TEXT,
    message TEXT NOT NULL,
    agent TEXT,
    from_agent TEXT,
    status TEXT DEFAULT 'pending' NOT NULL,
    retry_count INTEGER DEFAULT 0 NOT NULL,
    last_error TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE TABLE responses (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    sender TEXT NOT NULL,
    sender_id TEXT,
    message TEXT NOT NULL,
    original_message TEXT NOT NULL,
    agent TEXT,
    files TEXT,
    metadata TEXT,
    status TEXT DEFAULT 'pending' NOT NULL,
    created_at INTEGER NOT NULL,
    acked_at INTEGER
);
CREATE TABLE agent_messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_id TEXT NOT NULL,
    role TEXT NOT NULL,
    channel TEXT NOT NULL,
    sender TEXT NOT NULL,
    message_id TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX messages_by_status ON messages (status, agent, created_at);
CREATE INDEX responses_by_channel ON responses (channel, status);
CREATE INDEX agent_messages_by_agent ON agent_messages (agent_id, created_at);
"""

ENQUEUE: Final = """
INSERT INTO messages (
    message_id, channel, sender, sender_id, message, agent, from_agent,
    status, created_at, updated_at
) VALUES (?, 'api', 'Bench', 'bench', ?, ?, NULL, 'pending', ?, ?)
"""

REMEMBER: Final = """
INSERT INTO agent_messages (agent_id, role, channel, sender, message_id, content, created_at)
VALUES (?, ?, 'api', ?, ?, ?, ?)
"""

PENDING: Final = """
SELECT * FROM messages
WHERE status = 'pending' AND (agent = ?1 OR (agent IS NULL AND ?1 = 'default'))
ORDER BY created_at
"""

MARK: Final = "UPDATE messages SET status = ?, updated_at = ? WHERE id = ?"

RESPOND: Final = """
INSERT INTO responses (
    message_id, channel, sender, sender_id, message, original_message, agent,
    files, metadata, status, created_at
) VALUES (?, 'api', 'Bench', 'bench', ?, ?, ?, NULL, NULL, 'pending', ?)
"""

AGENT: Final = "coder"


def now() -> int:
    """Return the time in whole milliseconds, as TinyAGI keeps it."""
    return time.time_ns() // 1_000_000


class TinyAGIPeer:
    """Takes each message through seven transactions on one connection in autocommit mode.

    It re-creates only the writes: no polling for agents, no events and no pruning. The
    reference has no batches but one: a claim takes all that is pending for the agent.
    """

    def __init__(self, directory: Path, durability: Durability) -> None:
        """Create the tables and indexes of TinyAGI."""
        self.name = "tinyagi"
        self._connection = sqlite3.connect(directory / "tinyagi.db", isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA busy_timeout = 5000")
        apply(self._connection, durability)
        self._connection.executescript(SCHEMA)

    def cycle(self, count: int) -> list[float]:
        """Take one message at a time through all seven transactions."""
        finished = self._finished() + count
        seconds = stopwatch.laps(count, self._one)
        self._verify(finished)
        return seconds

    def batch(self, count: int, size: int) -> float:
        """Enqueue messages one by one, claim `size` at once, process them one by one."""
        finished = self._finished() + count
        seconds = stopwatch.total(count, size, self._many)
        self._verify(finished)
        return seconds

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _one(self) -> None:
        self._many(1)

    def _many(self, size: int) -> None:
        for _ in range(size):
            self._enqueue()
        claimed = self._claim()
        if len(claimed) != size:
            raise RuntimeError(f"claimed {len(claimed)} messages in place of {size}")
        for row in claimed:
            self._process(row)

    def _enqueue(self) -> None:
        """Make the first two transactions: the message and the user's line of history."""
        message_id, moment = f"api_{getrandbits(60):015x}", now()
        self._connection.execute(ENQUEUE, (message_id, PAYLOAD, AGENT, moment, moment))
        self._connection.execute(REMEMBER, (AGENT, "user", "Bench", message_id, PAYLOAD, now()))

    def _claim(self) -> list[sqlite3.Row]:
        """Make the third transaction: all that is pending for the agent becomes queued."""
        self._connection.execute("BEGIN IMMEDIATE")
        rows = self._connection.execute(PENDING, (AGENT,)).fetchall()
        marks = ",".join("?" * len(rows))
        self._connection.execute(
            f"UPDATE messages SET status = 'queued', updated_at = ? WHERE id IN ({marks})",
            (now(), *(row["id"] for row in rows)),
        )
        self._connection.execute("COMMIT")
        return rows

    def _process(self, row: sqlite3.Row) -> None:
        """Make the last four transactions: processing, history, response and completed."""
        number, message_id, agent, text = row["id"], row["message_id"], row["agent"], row["message"]
        self._connection.execute(MARK, ("processing", now(), number))
        self._connection.execute(REMEMBER, (agent, "assistant", agent, message_id, text, now()))
        self._connection.execute(RESPOND, (message_id, text, text, agent, now()))
        self._connection.execute(MARK, ("completed", now(), number))

    def _finished(self) -> int:
        query = "SELECT count(*) FROM messages WHERE status = 'completed'"
        return int(self._connection.execute(query).fetchone()[0])

    def _verify(self, finished: int) -> None:
        found = self._finished()
        (responses,) = self._connection.execute("SELECT count(*) FROM responses").fetchone()
        (history,) = self._connection.execute("SELECT count(*) FROM agent_messages").fetchone()
        if (found, responses, history) != (finished, finished, 2 * finished):
            raise RuntimeError(f"tinyagi completed {found} messages in place of {finished}")
