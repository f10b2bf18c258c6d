"""Reads a store with plain SQL and says where it differs from the model."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any

import psycopg

from bullpen.core.models import whole_schema
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.base import Store
from bullpen.core.store.postgres import PostgresStore
from bullpen.core.store.sqlite import SqliteStore
from tests.model.book import Book, Item

Row = tuple[Any, ...]

COLUMNS = (
    *("message_id", "message", "agent", "status", "retry_count", "crash_count", "claim_token"),
    *("channel", "sender", "sender_id", "from_agent", "conversation_id", "parent_id", "hop"),
    *("team_id", "reply_to", "priority", "deadline", "ready", "available_at", "sort_key"),
    *("created_at", "updated_at"),
)
_LIST = ", ".join(COLUMNS)
MESSAGES = (
    f"SELECT id, 0, {_LIST} FROM messages"
    f" UNION ALL SELECT id, 1, {_LIST} FROM messages_archive ORDER BY 1"
)
LANES = (
    "SELECT agent, state, ordering, batching, max_depth, overflow, max_attempts, pending, head_key,"
    " not_before, claim_token, lease_expires_at, batch FROM lanes ORDER BY agent"
)
RECORDS = {
    "events": "type, agent, message_id",
    "responses": "message_id, seq, message",
    "attempts": "message_id, messages, outcome, error_kind",
    "agent_messages": "agent_id, role, content",
    "chat_messages": "team_id, from_agent, message",
}
"""The tables to which rows are only added."""


class Reader:
    """A connection of its own, that sees what is committed."""

    def __init__(self, store: Store) -> None:
        assert isinstance(store, (SqliteStore, PostgresStore))
        self._connection: sqlite3.Connection | psycopg.Connection[Any] = store.connect()

    def rows(self, sql: str) -> list[Row]:
        """The answer to a plain statement."""
        connection: Any = self._connection
        found: list[Row] = connection.execute(sql).fetchall()
        return found

    def empty(self) -> None:
        """Delete every row of every table."""
        connection: Any = self._connection
        connection.execute("BEGIN")
        for table in whole_schema().sorted_tables:
            connection.execute(f"DELETE FROM {table.name}")
        connection.execute("COMMIT")

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


class Audit:
    """Compares one store with one model, after every step."""

    def __init__(self, reader: Reader, book: Book) -> None:
        self.reader = reader
        self.book = book
        self._last = 0
        self._read = dict.fromkeys(RECORDS, 0)
        self._written: Counter[str] = Counter()
        self._ids: dict[int, int] = {}
        """The messages' numbers by the ids of their rows."""

    def adopt(self) -> None:
        """Learn the ids that the store gave to the model's new messages."""
        nameless = [each for each in self.book.items.values() if each.number not in self.book.names]
        if not nameless:
            return
        found = self.reader.rows(
            f"SELECT id, message_id, message FROM messages WHERE id > {self._last} ORDER BY id"
        )
        _same("new messages", [row[2] for row in found], [each.new.message for each in nameless])
        for item, (row, name, _) in zip(nameless, found, strict=True):
            asked = item.new.message_id
            assert asked in (None, name), f"{asked} was stored as {name}"
            self.book.names[item.number] = name
            self._ids[row] = item.number
            self._last = row

    def check(self) -> None:
        """Everything that must hold after every step."""
        self.adopt()
        rows = self.reader.rows(MESSAGES)
        self._messages(rows)
        self._bounds(rows)
        self._lanes(rows)
        self._records()

    def finish(self) -> None:
        """What was once written down is still there."""
        for table, count in self._written.items():
            kept = self.reader.rows(f"SELECT count(*) FROM {table}")[0][0]
            assert kept >= count, f"{table} has {kept} rows, {count} were written"

    def _messages(self, rows: Sequence[Row]) -> None:
        """No message is lost, doubled or invented, and each is as the model has it."""
        expected = [self._row(each) for each in self.book.items.values()]
        found = [(self._ids.get(row[0]), bool(row[1]), *map(_plain, row[2:])) for row in rows]
        for mine, theirs in zip(expected, found, strict=False):
            named = zip(("number", "archived", *COLUMNS), mine, theirs, strict=True)
            wrong = [f"{name}: model {a!r}, store {b!r}" for name, a, b in named if a != b]
            assert not wrong, f"message {mine[2]}: " + "; ".join(wrong)
        _same("messages", [row[2] for row in found], [row[2] for row in expected])

    def _row(self, item: Item) -> Row:
        new, book = item.new, self.book
        lane = book.lanes[new.agent]
        token = lane.token if item.number in lane.batch else None
        return (
            *(item.number, item.archived, book.names[item.number], new.message, new.agent),
            *(item.status.value, item.retry_count, item.crash_count, token),
            *(new.channel, new.sender, new.sender_id, new.from_agent, book.conversation(item)),
            *(new.parent_id, new.hop, new.team_id),
            None if new.reply_to is None else str(new.reply_to),
            *(int(new.priority), item.deadline, int(item.ready), item.available_at),
            *(item.sort_key, item.created_at, item.updated_at),
        )

    def _bounds(self, rows: Sequence[Row]) -> None:
        """Nobody is tried more often than the limits say."""
        for row in rows:
            name, _, agent, _, retries, crashes = row[2:8]
            most = self.book.lanes[agent].most_attempts
            assert retries <= most, f"{name} was tried {retries} times of {most}"
            assert crashes <= self.book.settings.max_crashes, f"{name} crashed {crashes} times"

    def _lanes(self, rows: Sequence[Row]) -> None:
        """Each lane is as the model has it, and its sums agree with its messages."""
        found = {row[0]: row for row in self.reader.rows(LANES)}
        _same("lanes", sorted(found), sorted(self.book.lanes))
        for agent, row in found.items():
            lane, policy = self.book.lanes[agent], self.book.lanes[agent].policy
            told = (lane.state, policy.ordering, policy.batching, policy.max_depth, policy.overflow)
            _same(f"lane {agent}", row[1:7], (*told, lane.max_attempts))
            mine = [each for each in rows if each[4] == agent and not each[1]]
            waiting = [each for each in mine if each[5] == MessageState.PENDING]
            _same(f"lane {agent}: pending", row[7], len(waiting))
            self._head(agent, row, waiting)
            self._claim(agent, row, [each for each in mine if each[5] == MessageState.PROCESSING])

    def _head(self, agent: str, row: Row, waiting: Sequence[Row]) -> None:
        """The head is the first ready message of a lane that may run and is free, else NULL."""
        lane, now = self.book.lanes[agent], self.book.clock()
        over = lane.not_before is None or lane.not_before <= now
        assert row[9] == lane.not_before or (row[9] is None and over), f"{agent} waits for {row[9]}"
        runs = row[1] in (LaneState.ACTIVE, LaneState.DRAINING)
        free = runs and row[9] is None and row[10] is None
        keys = [each[2 + COLUMNS.index("sort_key")] for each in waiting if each[20]]
        _same(f"lane {agent}: head_key", row[8], min(keys, default=None) if free else None)
        if row[9] is None:
            _same(f"lane {agent}: head", row[8], self.book.head(agent))

    def _claim(self, agent: str, row: Row, running: Sequence[Row]) -> None:
        """What is processing is what the one live claim of its lane holds."""
        lane = self.book.lanes[agent]
        _same(f"lane {agent}: token", row[10], lane.token)
        _same(f"lane {agent}: running", {e[0] for e in running}, self._batch(row))
        _same(f"lane {agent}: tokens", {e[8] for e in running}, {row[10]} - {None})
        if lane.token is not None:
            _same(f"lane {agent}: lease", row[11], lane.expires)
            _same(
                f"lane {agent}: batch", [self._ids[e] for e in json.loads(row[12])], [*lane.batch]
            )

    def _batch(self, row: Row) -> set[int]:
        return set() if row[10] is None else set(json.loads(row[12]))

    def _records(self) -> None:
        """Each verb wrote down what it did, once."""
        log, names = self.book.log, self.book.names
        found = {table: self._new(table, columns) for table, columns in RECORDS.items()}
        events = Counter((e, a, None if n is None else names[n]) for e, a, n in log.events)
        told = Counter(found["events"])
        assert told == events, f"events too many: {told - events}; missing: {events - told}"
        answers = [(names[number], seq, text) for number, seq, text in log.responses]
        given = [(name, seq, _answer(text)) for name, seq, text in found["responses"]]
        _same("responses", given, answers)
        attempts = [(names[number], *rest) for number, *rest in log.attempts]
        _same("attempts", found["attempts"], attempts)
        said = [(agent, role, _answer(text)) for agent, role, text in found["agent_messages"]]
        _same("agent_messages", said, log.said)
        _same("chat_messages", found["chat_messages"], log.posts)
        self.book.read_log()

    def _new(self, table: str, columns: str) -> list[Row]:
        rows = self.reader.rows(
            f"SELECT id, {columns} FROM {table} WHERE id > {self._read[table]} ORDER BY id"
        )
        if rows:
            self._read[table] = rows[-1][0]
        self._written[table] += len(rows)
        return [row[1:] for row in rows]


def _plain(value: object) -> object:
    """One kind of truth: SQLite has none of its own."""
    return int(value) if isinstance(value, bool) else value


def _answer(text: str) -> str | None:
    """An answer, or None for word that there will be none, or that a person must help."""
    told = (" could not answer: ", " is paused: ", " is held: ")
    return None if any(each in text for each in told) else text


def _same(what: str, found: object, expected: object) -> None:
    assert found == expected, f"{what}: the store has {found!r}, the model {expected!r}"
