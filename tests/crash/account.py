"""The account: what must be true of a store when all its work is done, whatever was killed."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Table, select
from sqlalchemy.engine import make_url

from bullpen.core.message import ROOM
from bullpen.core.models import (
    AGENT_MESSAGES,
    ATTEMPTS,
    CHAT_MESSAGES,
    LANES,
    MESSAGES,
    RESPONSES,
    whole_schema,
)
from bullpen.core.states import TERMINAL_STATES, ResponseState
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore
from bullpen.core.store.statement import Statement
from tests.crash.children import until
from tests.crash.work import ANSWERS, BATCHED, CHILDREN, PARTS, Order, Platform, Task

Row = dict[str, Any]
Dump = dict[str, list[tuple[object, ...]]]


def _everything(table: Table) -> Statement[tuple[object, ...]]:
    return Statement(lambda: select(*table.c).order_by(*table.primary_key.columns))


EVERYTHING = {name: _everything(table) for name, table in whole_schema().tables.items()}


def rows(store: Store, table: Table) -> list[Row]:
    """All rows of a table, in the order of its key."""
    with store.read() as tx:
        found = tx.all(EVERYTHING[table.name], {})
    return [dict(zip(table.c.keys(), row, strict=True)) for row in found]


def dump(store: Store) -> Dump:
    """Everything that the database holds."""
    return {
        name: [tuple(row.values()) for row in rows(store, table)]
        for name, table in whole_schema().tables.items()
    }


def wait_for_backends(store: Store) -> None:
    """On PostgreSQL: until the server has noticed that its killed clients are gone."""
    if isinstance(store, SqliteStore):
        return
    name = make_url(store.settings.url).database

    def gone() -> bool:
        with store.read() as tx:
            row = tx.fetch(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' "
                f"AND datname = '{name}' AND pid <> pg_backend_pid()"
            )
        return row == (0,)

    until(gone, "the server notices that its clients were killed")


def check_integrity(store: Store) -> None:
    """On SQLite: the file itself is sound."""
    if isinstance(store, SqliteStore):
        connection = sqlite3.connect(store.path)
        try:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        finally:
            connection.close()


class Account:
    """The rows of a store whose work is done, and what they must say."""

    def __init__(self, store: Store) -> None:
        self.messages = {str(row["message_id"]): row for row in rows(store, MESSAGES)}
        self.attempts: dict[str, list[Row]] = defaultdict(list)
        self.completed: list[Row] = []
        for row in rows(store, ATTEMPTS):
            self.attempts[row["message_id"]].append(row)
            if row["outcome"] == "completed":
                self.completed.append(row)
        self.responses: dict[str, list[Row]] = defaultdict(list)
        for row in rows(store, RESPONSES):
            self.responses[row["message_id"]].append(row)
        said = rows(store, AGENT_MESSAGES)
        self.heard = [row for row in said if row["role"] == "user"]
        self.posts = len(rows(store, CHAT_MESSAGES))
        self.lanes = rows(store, LANES)

    def outcomes(self, message_id: str) -> list[str]:
        """How the runs ended of which it was the primary, in their order."""
        return [str(row["outcome"]) for row in self.attempts[message_id]]

    def check(self) -> None:
        """Everything that can be said of every message, whatever happened to it."""
        heard = Counter(row["message_id"] for row in self.heard)
        children = Counter(row["parent_id"] for row in self.messages.values())
        for message_id, row in self.messages.items():
            completed = row["status"] == "completed"
            assert row["status"] in TERMINAL_STATES, row
            assert row["claim_token"] is None, row
            assert heard[message_id] == 1, row
            assert children[message_id] == (self._children(row) if completed else 0), row
            assert self._texts(message_id) == self._expected(row), row
            if row["agent"] not in BATCHED:
                self._check_counts(row)
        self._check_batches()
        self._check_lanes()
        expected = sum(
            Task.parse(row["message"]).order is Order.POST and row["status"] == "completed"
            for row in self.messages.values()
        )
        assert self.posts == expected

    def check_order(self) -> None:
        """Each sender's messages to an agent were answered in the order in which he sent them."""
        last: dict[tuple[str, str], int] = {}
        retried = {Order.STUMBLE, Order.REFUSE}
        for attempt in self.completed:
            asked = self.messages[attempt["message_id"]]
            if asked["from_agent"] is not None:
                continue
            for task in map(Task.parse, self._answered(asked)):
                if task.order in retried:
                    continue
                key = (asked["agent"], task.series)
                assert last.get(key, -1) < task.number, asked
                last[key] = task.number

    def _answered(self, asked: Row) -> list[str]:
        """The texts of the messages that were answered with this one, the first of its batch."""
        if asked["agent"] not in BATCHED:
            return [str(asked["message"])]
        return str(self.responses[asked["message_id"]][0]["message"]).splitlines()

    def check_deliveries(self, platform: Platform) -> None:
        """No part arrived twice, and what was not sent is not called delivered."""
        arrived = platform.everything()
        for row in (row for each in self.responses.values() for row in each):
            parts = arrived.get(row["id"], [])
            match ResponseState(row["status"]):
                case ResponseState.ACKED:
                    assert parts == list(range(PARTS)), row
                case ResponseState.UNKNOWN:
                    sent = int(row["parts_sent"])
                    assert parts in ([*range(sent)], [*range(sent + 1)]), row
                case ResponseState.DEAD:
                    assert parts == [*range(row["parts_sent"])], row
                case ResponseState.PENDING:
                    raise AssertionError(f"left undelivered: {row}")

    def _check_counts(self, row: Row) -> None:
        outcomes = Counter(self.outcomes(row["message_id"]))
        assert outcomes["completed"] == int(row["status"] == "completed"), row
        assert outcomes["crashed"] == row["crash_count"], row
        assert outcomes["failed"] == row["retry_count"], row

    def _check_batches(self) -> None:
        """Every completed message was in one completed run, and none was in two."""
        for agent in BATCHED:
            runs = [
                each
                for attempts in self.attempts.values()
                for each in attempts
                if each["agent"] == agent and each["outcome"] == "completed"
            ]
            mine = [row for row in self.messages.values() if row["agent"] == agent]
            done = sum(row["status"] == "completed" for row in mine)
            assert sum(run["messages"] for run in runs) == done
            assert len({run["message_id"] for run in runs}) == len(runs)

    def _check_lanes(self) -> None:
        for lane in self.lanes:
            assert (lane["pending"], lane["claim_token"], lane["head_key"]) == (0, None, None), lane

    def _children(self, row: Row) -> int:
        return CHILDREN.get(Task.parse(row["message"]).order, 0) if self._primary(row) else 0

    def _primary(self, row: Row) -> bool:
        return "completed" in self.outcomes(row["message_id"])

    def _texts(self, message_id: str) -> list[tuple[int, bool]]:
        return [(row["seq"], "could not" in row["message"]) for row in self.responses[message_id]]

    def _expected(self, row: Row) -> list[tuple[int, bool]]:
        """The numbers of its responses, and whether each is word that there is no answer."""
        if row["channel"] == ROOM:
            return []
        if row["status"] == "dead":
            return [(0, True)]
        count = ANSWERS.get(Task.parse(row["message"]).order, 1) if self._primary(row) else 0
        return [(seq, False) for seq in range(count)]


def settled(account: Account, accepted: Iterable[str], intended: Iterable[str]) -> None:
    """Every accepted message is there, and none that nobody meant to send."""
    assert set(accepted) <= account.messages.keys()
    sent = {id_ for id_, row in account.messages.items() if row["parent_id"] is None}
    assert sent <= set(intended)
