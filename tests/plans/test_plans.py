"""What a statement costs does not depend on how much is finished or waits."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import bindparam, delete

from bullpen.channels.outgoing import queue as outgoing
from bullpen.core.answers import leases
from bullpen.core.channels import chats, pairing, senders
from bullpen.core.inspect import message_detail, messages
from bullpen.core.maintenance import dead_letters as dead_letter_jobs
from bullpen.core.maintenance import retention
from bullpen.core.message import NewMessage
from bullpen.core.models import LANES
from bullpen.core.outbox import delivery, recovery, transitions
from bullpen.core.queue import (
    attempts,
    claim,
    conversations,
    dead_letters,
    enqueue,
    fail,
    finish,
    lanes,
    manage,
    timers,
)
from bullpen.core.store import scan
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore
from bullpen.core.store.statement import Statement
from tests.plans.database import fill
from tests.stores import START, FakeClock, Stores

FINISHED, WAITING = 300_000, 50_000

READS_FEW_ROWS = {
    "SELECT_HELD",  # one conversation's messages
    "SUM_CONVERSATION",  # one conversation's attempts, of which this database has none
    "ADD_TO_GROUP",  # one row for each cause of death
    "INSERT_GROUP",
    "MARK_NOTIFIED",
    "SELECT_GROUP",  # as many rows as causes
    "SELECT_NEWEST_GROUPS",
    "SELECT_OPEN_LANES",  # a lane for each agent, for the suggestion in an error
    "SELECT_WRONG",  # a row for each channel
    "SET_WRONG",
}
"""Statements of tables or conversations that stay small, so that an index would not help."""

HOT: dict[str, Statement[object]] = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in (
        *(
            attempts,
            claim,
            conversations,
            dead_letters,
            enqueue,
            fail,
            finish,
            lanes,
            manage,
            timers,
        ),
        *(chats, delivery, pairing, recovery, senders, transitions),
    )
    for name, value in vars(module).items()
    if isinstance(value, Statement) and name not in READS_FEW_ROWS
}
"""Every statement of the verbs."""

HOT |= {
    "archive.OLD_MESSAGES": retention.FINISHED_MESSAGES,
    "archive.COPY_MESSAGE": retention.COPY_MESSAGES,
    "archive.REMOVE_MESSAGE": retention.DELETE_MESSAGES,
    "pairing.WAITING_SENDERS": pairing.SELECT_WAITING[0],
    "pairing.WAITING_GROUPS": pairing.SELECT_WAITING[1],
    "receipts.UNPAIRED": retention.DELETE_UNPAIRED,
    "archived.OLD_MESSAGES": retention.DELETE_ARCHIVED_MESSAGES,
    "dead_letter_jobs.UPTO": dead_letter_jobs.NEXT_CURSOR,
    "dead_letter_jobs.DEATHS": dead_letter_jobs.NEW_DEAD_LETTERS,
    "dead_letter_jobs.COUNT": dead_letter_jobs.COUNT_DEAD,
}
"""Every minute or hour, whatever is there, and beside everybody's work."""

_STATE, _AGENT = frozenset({"state"}), frozenset({"agent"})

HOT |= {
    f"walk.{name}": scan.select_batch(index, names, further, newest)
    for name, index, names, further, newest in (
        ("dead", messages.DEAD_OR_HELD_SCAN, _STATE | {"error", "since", "before"}, False, False),
        (
            "dead, on",
            messages.DEAD_OR_HELD_SCAN,
            _STATE | {"error", "since", "before"},
            True,
            False,
        ),
        ("newest dead", messages.DEAD_OR_HELD_SCAN, _STATE, False, True),
        ("dead after an id", messages.DEAD_OR_HELD_BY_ID_SCAN, _STATE | {"above"}, False, False),
        ("newest dead, on", messages.DEAD_OR_HELD_SCAN, _STATE, True, True),
        ("finished, on", messages.FINISHED_SCAN, _STATE | {"sender"}, True, False),
        ("ready, on", messages.READY_SCAN, frozenset({"before"}), True, False),
        ("ready of one", messages.READY_IN_LANE_SCAN, _AGENT | {"before"}, False, False),
        ("ready of one, on", messages.READY_IN_LANE_SCAN, _AGENT | {"before"}, True, False),
        ("delayed, on", messages.DELAYED_SCAN, _AGENT | {"before"}, True, False),
        ("running", messages.PROCESSING_SCAN, frozenset({"rows"}), False, False),
    )
}
HOT |= {
    "walk.how many dead": scan.select_count(messages.DEAD_OR_HELD_SCAN, _STATE),
    "walk.how many dead of one": scan.select_count(
        messages.DEAD_OR_HELD_SCAN, _STATE | {"agent", "kind"}
    ),
    "walk.how many ready": scan.select_count(messages.READY_IN_LANE_SCAN, _AGENT),
    "life.EARLIER": message_detail.COUNT_EARLIER,
    "outgoing.SELECT_LOOKED_UP": outgoing.SELECT_LOOKED_UP,
}
"""What people look for, however much there is."""

SORTS: set[str] = {
    "conversations.SELECT_CANCELLABLE",  # sorts the few messages of one conversation
    "conversations.COUNT_CONVERSATION",
    "walk.dead after an id",  # sorts what waits for people, of which there is little
    "walk.delayed, on",  # sorts what is delayed, of which there is little
}
"""What may sort, for it sorts only what it found by an index."""

FIRST_OF_AN_INDEX = {
    "SCAN messages USING INDEX ix_messages_delayed",  # LIMIT 1, for the next delay to end
    "SCAN lanes USING INDEX ix_lanes_claimable",  # LIMIT 1, for the lane whose turn it is
    "SCAN lanes USING COVERING INDEX ix_lanes_claimable",  # EXISTS
    "SCAN responses USING INDEX ix_responses_recover",  # what is looked up, which is little
    "SCAN anon_1",  # what an index gave, and no more than a thousand of it
    "SCAN json_each VIRTUAL TABLE INDEX 1:",  # the list that was handed over
}
"""What SQLite calls a scan although it stops after the first entry."""

VALUES: dict[str, object] = {
    "agent": "agent3",
    "lane": "agent3",
    "now": START + 200_000,
    "window": 32,
    "count": 2,
    "message": 1_000,
    "message_id": "done1000",
    "conversation": "done1000",
    "token": "agent3.0000",
    "worker": "worker-1",
    "expires": START,
    "change": 1,
    "head": START,
    "source": "pending",
    "status": "pending",
    "target": "held",
    "channel": "api",
    "account": "channel3",
    "id": "C3",
    "prefix": "C3\x1f",
    "response": 1_000,
    "value": "1",
    "event_id": "Ev1",
    "rows": "[1, 2, 3]",
    "state": "dead",
    "before": START + 20_000,
    "acked_since": START + 199_000,  # of the last minutes only
}
NUMBERS = {
    *("above", "at", "before", "cost", "crashed", "deadline", "failed"),
    *("gone", "hop", "input_tokens", "max_attempts", "max_depth"),
    *("messages", "output_tokens", "pending", "priority", "retry_count", "sort_key"),
    *("after", "key", "last_id", "last_sort_key", "limit", "old", "settled", "since"),
    *("acked", "arrival", "expires", "lease", "parts", "recover", "tell", "uncounted"),
    *("until", "upto", "attempt", "dead", "wait"),
}


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def full(request: pytest.FixtureRequest, stores: Stores) -> Iterator[Store]:
    """A store with a long past and a long queue, one for all tests of this file."""
    clock = FakeClock(START + 200_000)
    with stores.opened(stores.settings(str(request.param)), clock) as store:
        fill(store, FINISHED, WAITING)
        yield store


def _values(sql: str) -> dict[str, object]:
    found = {*re.findall(r"(?<![:\w]):(\w+)", sql), *re.findall(r"%\((\w+)\)s", sql)}
    return {name: _value(name) for name in found}


def _value(name: str) -> object:
    if name in VALUES:
        return VALUES[name]
    if name in ("direct", "ready", "is_direct", "is_ready", "is_sending"):
        return True
    if name.startswith("old_"):
        return "1"
    return 1 if name in NUMBERS or name.endswith("_at") else "x"


def _plan(store: Store, statement: Statement[object]) -> list[str]:
    """What the database means to do, a step a line."""
    sql = statement.text[store.dialect]
    if isinstance(store, SqliteStore):
        connection = store.connect()
        steps = connection.execute(f"EXPLAIN QUERY PLAN {sql}", _values(sql)).fetchall()
        connection.close()
        return [str(step[3]) for step in steps]
    url = store.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as server:
        lines = server.execute(f"EXPLAIN {sql}".encode(), _values(sql)).fetchall()
        server.rollback()
    return [str(line[0]).strip() for line in lines]


def _scans(plan: list[str]) -> list[str]:
    """The steps that read a whole table, or a whole index."""
    whole = r"^SCAN (?!CONSTANT ROW)|Seq Scan on (?!holds )"  # no row or one
    return [step for step in plan if re.search(whole, step) and step not in FIRST_OF_AN_INDEX]


def _sorts(plan: list[str]) -> list[str]:
    return [step for step in plan if re.search(r"TEMP B-TREE|^(-> +)?(Incremental )?Sort\b", step)]


def test_the_test_sees_what_it_looks_for(full: Store) -> None:
    """A plan that is bad on purpose."""
    bad: Statement[object] = Statement(
        lambda: delete(LANES).where(LANES.c.claimed_by == bindparam("worker"))
    )
    assert _scans(_plan(full, bad))
    assert _scans(_plan(full, leases.SELECT_LEASES))


def test_no_statement_reads_a_whole_table(full: Store, subtests: pytest.Subtests) -> None:
    for name in HOT:
        with subtests.test(name=name):
            plan = _plan(full, HOT[name])
            assert _scans(plan) == [], "\n".join(plan)


def test_no_statement_sorts(full: Store, subtests: pytest.Subtests) -> None:
    for name in sorted(HOT.keys() - SORTS):
        with subtests.test(name=name):
            plan = _plan(full, HOT[name])
            assert _sorts(plan) == [], "\n".join(plan)


def _claim_times(store: Store, rounds: int = 60) -> list[float]:
    """How long claims took, each undone."""
    times = []
    for _ in range(rounds):
        try:
            with store.write(durable=False) as tx:
                began = time.perf_counter()
                assert claim.claim(tx, "worker-1") is not None
                times.append(time.perf_counter() - began)
                raise _Undo
        except _Undo:
            pass
    return times


def _enqueue_times(store: Store, rounds: int = 60) -> list[float]:
    times = []
    for _ in range(rounds):
        try:
            with store.write(durable=False) as tx:
                began = time.perf_counter()
                enqueue.enqueue(tx, NewMessage(agent="agent3", message="x", message_id="mine"))
                times.append(time.perf_counter() - began)
                raise _Undo
        except _Undo:
            pass
    return times


class _Undo(Exception):
    """Rolls a measured transaction back."""


def test_a_claim_and_an_enqueue_cost_the_same_in_a_long_queue(full: Store, stores: Stores) -> None:
    clock = FakeClock(START + 200_000)
    with stores.opened(stores.settings(full.dialect), clock) as short:
        fill(short, finished=0, waiting=1_000)
        for measure in (_claim_times, _enqueue_times):
            measure(short, 10)
            measure(full, 10)
            little, much = measure(short), measure(full)
            # The least of many: what else the machine does makes some slower, and none quicker.
            assert min(much) <= 3 * min(little)
