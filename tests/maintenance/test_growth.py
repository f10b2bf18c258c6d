"""A database that takes in as much every day stops growing, when its days are over.

`make upkeep` does it with a hundred thousand messages a day.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import Table, text

from bullpen.core.background import register_worker, report_liveness
from bullpen.core.clock import HOUR
from bullpen.core.maintenance import retention
from bullpen.core.models import (
    AGENT_MESSAGES,
    ATTEMPTS,
    EVENTS,
    MESSAGES,
    RECEIPTS,
    RESPONSES,
    SYSTEM_AGENTS,
)
from bullpen.core.outbox.manage import ack_response
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore
from tests.bench.load import NUMBERS
from tests.conformance.verbs import do, done, hire, rows, send, take
from tests.maintenance.election import enter_rota, run_due
from tests.stores import START, FakeClock, Stores

MESSAGES_A_DAY = int(os.environ.get("UPKEEP_MESSAGES", "2000"))
SIMULATED_DAYS = 30
ROUNDS = 4
"""How often in a day everything that is due is done."""
KEPT_DAYS = 5
BYTES = 2000
"""About what a message leaves behind."""

TABLES = (MESSAGES, RESPONSES, EVENTS, ATTEMPTS, AGENT_MESSAGES, RECEIPTS)
SIZES = "SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables"

# Spread over all that there are, as real ones.
ID = {
    "sqlite": "printf('api_%08x', (:base + i) * 2654435761 % 4294967296)",
    "postgresql": "'api_' || to_hex((CAST(:base AS BIGINT) + i) * 2654435761 % 4294967296)",
}


@pytest.fixture
def store(
    stores: Stores, kind: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    """A store that keeps things for a few days, and whose loops take no rest."""
    monkeypatch.setattr(retention, "MAX_PAUSE_SECONDS", 0.0)
    settings = stores.settings(
        kind,
        **dict.fromkeys(("archive_days", "event_days"), 3),
        **dict.fromkeys(("attempt_days", "history_days", "schedule_days"), 5),
        receipt_days=7,
    )
    with stores.opened(settings, clock) as opened:
        yield opened


def cycle(store: Store) -> dict[Table, list[dict[str, object]]]:
    """What one message leaves behind that was answered and delivered."""
    hire(store)
    send(store, "x" * 200, channel="slack", sender="Ann", sender_id="U1", event_ids=("Ev1",))
    done(store, take(store).token)
    do(store, ack_response, rows(store, RESPONSES)[0]["id"])
    found = {table: rows(store, table) for table in TABLES}
    with store.engine.begin() as connection:
        for table in TABLES:
            connection.execute(table.delete())
    assert found[MESSAGES][0]["status"] == "completed"
    assert found[RESPONSES][0]["status"] == "acked"
    return found


class Days:
    """Days on which as many such messages come."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self._store = store
        self._clock = clock
        self._model = cycle(store)
        self._count = 0

    def pass_hours(self, hours: int, count: int) -> None:
        """Let these come, one after the other, and the time pass."""
        step = hours * HOUR // count
        with self._store.engine.begin() as connection:
            for table, models in self._model.items():
                for model in models:
                    given = {
                        "rows": count,
                        "base": self._count,
                        "start": self._clock.now() - START,
                        "step": step,
                    }
                    connection.execute(text(self._insert(table, model)), {**_plain(model), **given})
        self._count += count
        self._clock.advance(hours * HOUR)

    def _insert(self, table: Table, model: dict[str, object]) -> str:
        names = [name for name in model if name != "id"]
        values = ", ".join(self._value(name, model[name]) for name in names)
        columns = ", ".join(names)
        numbers = NUMBERS[self._store.dialect]
        return f"INSERT INTO {table.name} ({columns}) {numbers} SELECT {values} FROM numbers"

    def _value(self, name: str, value: object) -> str:
        if name in ("message_id", "conversation_id", "event_id"):
            return ID[self._store.dialect]
        if isinstance(value, int) and value > START // 2:
            return f"CAST(:{name} AS BIGINT) + CAST(:start AS BIGINT) + i * CAST(:step AS BIGINT)"
        return f"CAST(:{name} AS TEXT)" if isinstance(value, str) else f":{name}"


def _plain(model: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in model.items() if name != "id"}


def size(store: Store) -> int:
    """How many bytes it takes on the disk."""
    if isinstance(store, SqliteStore):
        with closing(store.connect()) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return store.path.stat().st_size
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM (ANALYZE)"))
        return int(connection.execute(text(SIZES)).scalar_one())


@pytest.mark.slow
@pytest.mark.timeout(0 if MESSAGES_A_DAY > 10_000 else 300)
def test_after_its_days_are_over_a_database_grows_no_more(store: Store, clock: FakeClock) -> None:
    days = Days(store, clock)
    enter_rota(store)
    with store.write() as tx:
        scheduler = register_worker(tx, "scheduler")
    sizes: list[int] = []
    for day in range(SIMULATED_DAYS):
        for _ in range(ROUNDS):
            days.pass_hours(24 // ROUNDS, MESSAGES_A_DAY // ROUNDS)
            with store.write() as tx:
                assert report_liveness(tx, scheduler)
            run_due(store, "upkeep")
        sizes.append(size(store))
        print(f"day {day + 1}: {sizes[-1] / 1e6:.1f} MB")
    two_thirds = SIMULATED_DAYS * 2 // 3
    # On PostgreSQL one day's rows are a little more than another's, for nobody moves rows there.
    assert max(sizes[-5:]) <= 1.1 * max(sizes[two_thirds - 5 : two_thirds]), sizes
    assert max(sizes[-5:]) < 5 * MESSAGES_A_DAY * BYTES * KEPT_DAYS, sizes
    errors = {row["name"]: row["last_error"] for row in rows(store, SYSTEM_AGENTS)}
    assert set(errors.values()) == {None}, errors
