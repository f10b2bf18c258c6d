"""No row is missed and none is read twice, beside writers and beside the archive job."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import insert

from bullpen.core.errors import StoreBusy
from bullpen.core.maintenance.retention import ARCHIVE_MESSAGES
from bullpen.core.store.base import Store
from bullpen.reports.facts.position import cut_ranges, find_committed, last_id
from bullpen.reports.facts.read import IdRange, StoreAddress, read_range
from bullpen.reports.facts.tables import ATTEMPTS, EVENTS, FACT_TABLES, MESSAGES, FactTable
from tests.reports.source.rows import BIG, bare_row, full_row, store_table, write_rows
from tests.reports.source.writing import stored_ids, threads, writers
from tests.stores import FakeClock, Stores


def read_ids(store: Store, table: FactTable, first: int, last: int, rows: int = 50) -> list[int]:
    """The ids that are read in ranges of so many rows."""
    address = StoreAddress(store.settings.url)
    return [
        row_id
        for ids in cut_ranges(store, table, first, last, rows)
        for batch in read_range(address, table, ["id"], ids)
        for row_id in batch["id"].to_pylist()
    ]


def test_ranges_cover_all_rows_and_skip_what_was_deleted(store: Store) -> None:
    assert cut_ranges(store, ATTEMPTS, 0, 10) == []
    ids = [3, 4, 5, 6, 7, 100, BIG, BIG + 1]
    write_rows(store, "attempts", [{**full_row("attempts", 1), "id": each} for each in ids])
    assert cut_ranges(store, ATTEMPTS, 0, BIG, rows=2) == [
        IdRange(3, 4),
        IdRange(5, 6),
        IdRange(7, 8),
        IdRange(100, 101),
        IdRange(BIG, BIG),
    ]
    assert cut_ranges(store, ATTEMPTS, 4, 99, rows=1000) == [IdRange(4, 99)]
    assert cut_ranges(store, ATTEMPTS, 8, 99) == []
    assert read_ids(store, ATTEMPTS, 0, last_id(store, ATTEMPTS), rows=2) == ids


def test_a_table_whose_rows_are_all_archived_has_them(store: Store) -> None:
    write_rows(store, "messages_archive", [full_row("messages_archive", 5)])
    assert find_committed(store, MESSAGES) == 5
    assert read_ids(store, MESSAGES, 1, 5) == [5]


@pytest.mark.postgres
def test_sequences_have_no_cache_because_a_connection_would_use_old_ids(stores: Stores) -> None:
    live = [table.stored_in[0] for table in FACT_TABLES.values()]
    with (
        stores.opened(stores.settings("postgresql")) as store,
        store.engine.connect() as connection,
    ):
        for name in live:
            cache = connection.exec_driver_sql(
                "SELECT seqcache FROM pg_sequence"
                f" WHERE seqrelid = pg_get_serial_sequence('{name}', 'id')::regclass"
            ).scalar_one()
            assert cache == 1, name


@pytest.mark.postgres
def test_a_transaction_that_writes_for_too_long_is_an_error_and_not_a_gap(stores: Stores) -> None:
    with stores.opened(stores.settings("postgresql")) as store:
        table = store_table("attempts")
        row = full_row("attempts", 1)
        del row["id"]
        with store.engine.connect() as late:
            late.execute(insert(table).values(row))
            with store.engine.begin() as early:
                early.execute(insert(table).values(row))
            with pytest.raises(StoreBusy, match="writing to attempts"):
                find_committed(store, ATTEMPTS, seconds=0.1)
            late.commit()
        assert read_ids(store, ATTEMPTS, 1, find_committed(store, ATTEMPTS)) == [1, 2]


def test_beside_writers_no_row_is_missed_and_none_is_read_twice(store: Store) -> None:
    found: list[int] = []
    rounds = upto = 0
    with writers(store) as writing:
        while writing():
            committed = find_committed(store, EVENTS, seconds=60)
            found += read_ids(store, EVENTS, upto + 1, committed)
            upto = committed
            rounds += 1
    found += read_ids(store, EVENTS, upto + 1, find_committed(store, EVENTS))
    assert sorted(found) == stored_ids(store)
    assert rounds > 2
    assert len(found) > 100


def test_the_archive_job_neither_hides_nor_doubles_a_row(store: Store, clock: FakeClock) -> None:
    ids = list(range(1, 401))
    row = {**bare_row("messages", 1), "status": "completed"}
    write_rows(
        store,
        "messages",
        [{**row, "id": n, "message_id": f"cli_{n}", "updated_at": n} for n in ids],
    )

    def archive() -> None:
        for before in ids[::4]:
            clock.set_by(before + 3 + (ARCHIVE_MESSAGES.max_age(store.settings) or 0) - clock.now())
            with store.write() as tx:
                ARCHIVE_MESSAGES.remove_batch(tx)
            time.sleep(0.01)

    rounds = 0
    with threads(archive) as archiving:
        while archiving():
            assert sorted(read_ids(store, MESSAGES, 1, 400, rows=400)) == ids
            rounds += 1
    assert sorted(read_ids(store, MESSAGES, 1, 400, rows=400)) == ids
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM messages").scalar_one() == 0
    assert rounds > 2
