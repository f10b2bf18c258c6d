"""Runs from before the columns that reports need are facts like all others."""

from __future__ import annotations

from sqlalchemy import text, update

from bullpen.core.models import ATTEMPTS as ROWS
from bullpen.core.store.base import Store
from bullpen.reports.facts.tables import ATTEMPTS
from tests.conformance.verbs import done, lane, send, take
from tests.stores import START, FakeClock

NAMES = ("message_id", "available_at", "conversation_at", "attempt", "sender", "dead", "wait")


def test_an_old_run_has_the_best_known_values(store: Store, clock: FakeClock) -> None:
    lane(store)
    old, new = send(store, sender="a"), send(store, sender="b", delay=7)
    clock.advance(7)
    for _ in range(2):
        done(store, take(store, limit=1).token)
    before = {"available_at": None, "conversation_at": None, "attempt": None, "retry_count": 2}
    with store.engine.begin() as connection:
        connection.execute(update(ROWS).where(ROWS.c.message_id == old).values(before))
        for where in ("", "attempt > 0 AND available_at > 0"):
            sql = ATTEMPTS.select(store.dialect, NAMES, 1, 100, where)
            assert sorted(tuple(row) for row in connection.execute(text(sql))) == sorted(
                [
                    (old, START, START, 3, "a", 0, None),
                    (new, START + 7, START, 1, "b", 0, None),
                ]
            )
