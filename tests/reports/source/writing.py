"""Writers beside a reader: transactions that commit late and out of order, or roll back."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import insert

from bullpen.core.store.base import Store
from tests.reports.source.rows import full_row, store_table

WRITERS = 8
SECONDS = 1.5
"""How long they write: long enough for hundreds of transactions to overlap."""


@contextmanager
def writers(store: Store) -> Iterator[Callable[[], bool]]:
    """Eight threads that write events; gives whether one still does."""
    with threads(*(lambda: write_events(store) for _ in range(WRITERS))) as writing:
        yield writing


def stored_ids(store: Store) -> list[int]:
    """The ids of all events."""
    with store.engine.connect() as connection:
        return [*connection.exec_driver_sql("SELECT id FROM events ORDER BY id").scalars()]


def write_events(store: Store) -> None:
    """Write events for a while."""
    chance = random.Random(threading.get_ident())
    table = store_table("events")
    row = full_row("events", 1)
    del row["id"]
    until = time.monotonic() + SECONDS
    # Connections of its own: the pool of the store is small.
    engine = store.engine.execution_options()
    while time.monotonic() < until:
        with engine.connect() as connection:
            connection.execute(insert(table), [row] * chance.choice((1, 5)))
            if store.dialect == "postgresql":
                time.sleep(chance.uniform(0, 0.05))
            if chance.random() < 0.1:
                connection.rollback()
            else:
                connection.commit()


@contextmanager
def threads(*work: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Run the functions in threads; gives whether one still runs. Their errors are raised."""
    errors: list[BaseException] = []

    def run(each: Callable[[], None]) -> None:
        try:
            each()
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(each,)) for each in work]
    for thread in running:
        thread.start()
    try:
        yield lambda: any(each.is_alive() for each in running)
    finally:
        for thread in running:
            thread.join(60)
    if errors:
        raise errors[0]
