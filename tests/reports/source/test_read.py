"""Facts are read with their types and values, from both stores, in short statements."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bullpen.core.errors import InputError, NotShared, StoreError, StoreUnavailable
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.reports.facts import read as facts_read
from bullpen.reports.facts.read import IdRange, StoreAddress, arrow_schema, read_range
from bullpen.reports.facts.tables import (
    ATTEMPTS,
    EVENTS,
    FACT_TABLES,
    MESSAGES,
    FactTable,
    find_table,
)
from tests.reports.source.rows import BIG, UNICODE, bare_row, expected_fact, full_row, write_rows
from tests.stores import Stores

FIRST = IdRange(1, 1000)

BY_ADBC, BY_PYTHON = "sqlite by adbc", "sqlite by python"


@pytest.fixture(params=[BY_ADBC, BY_PYTHON, pytest.param("postgresql", marks=pytest.mark.postgres)])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which database, and which library reads SQLite."""
    by_python = request.param == BY_PYTHON
    monkeypatch.setattr(facts_read, "python_may_have_it_open", lambda: by_python)
    return str(request.param).partition(" ")[0]


def read(
    store: Store,
    table: FactTable,
    names: Sequence[str] | None = None,
    ids: IdRange = FIRST,
    where: str = "",
) -> list[dict[str, Any]]:
    """The rows that are read, by id."""
    store.close()  # two libraries of SQLite must not have the file open at once
    names = names or [each.name for each in table.columns]
    batches = list(read_range(StoreAddress(store.settings.url), table, names, ids, where))
    schema = arrow_schema(table.select_columns(names))
    assert all(each.schema == schema for each in batches)
    assert all(each.num_rows for each in batches)
    rows: list[dict[str, Any]] = [row for each in batches for row in each.to_pylist()]
    return sorted(rows, key=lambda row: row.get("id", 0))


def test_every_column_has_its_value_and_its_type_also_after_a_batch_of_nulls(store: Store) -> None:
    for table in FACT_TABLES.values():
        table = replace(table, batch_ids=2)
        live = table.stored_in[0]
        # The first batch has nothing but NULL where NULL is allowed.
        rows = [bare_row(live, 1), bare_row(live, 2), full_row(live, 3), bare_row(live, 4)]
        rows += [full_row(live, 5)]
        if table.fields:
            fields = {
                each.name: 7 if each.type == "integer" else UNICODE
                for each in table.columns
                if each.name in table.fields
            }
            rows[2]["data"] = json.dumps({**fields, "other": [1, {"deep": None}]})
            rows[4]["data"] = json.dumps(fields, ensure_ascii=False)
        write_rows(store, live, rows)
        assert read(store, table) == [expected_fact(table, row) for row in rows], table.name


def test_large_ids_and_numbers_keep_every_digit(store: Store) -> None:
    row = {**full_row("attempts", 2), "id": BIG, "cost": 0.1 + 0.2, "wait": 2**62 + 1, "hop": -1}
    write_rows(store, "attempts", [full_row("attempts", 1), row])
    assert read(store, ATTEMPTS, ids=IdRange(BIG - 5, BIG + 5)) == [expected_fact(ATTEMPTS, row)]


def test_live_and_archived_rows_are_one_table(store: Store) -> None:
    for table in (each for each in FACT_TABLES.values() if len(each.stored_in) > 1):
        live, archive = table.stored_in
        write_rows(store, live, [full_row(live, 1), full_row(live, 4)])
        write_rows(store, archive, [full_row(archive, 2), full_row(archive, 3)])
        assert read(store, table) == [
            expected_fact(table, full_row(live, 1)),
            expected_fact(table, full_row(archive, 2), archived=True),
            expected_fact(table, full_row(archive, 3), archived=True),
            expected_fact(table, full_row(live, 4)),
        ], table.name


def test_a_condition_selects_rows_by_any_column(store: Store) -> None:
    texts = ["Zoe", "adam", None, "it's", "{x}", "50%"]
    rows = [
        {**full_row("attempts", n), "fingerprint": text, "cost": n / 4}
        for n, text in enumerate(texts, 1)
    ]
    write_rows(store, "attempts", rows)
    cases = {
        "fingerprint = 'it''s'": [4],
        "fingerprint IN ('Zoe', '{x}', 'none')": [1, 5],
        "fingerprint = '50%' -- a comment": [6],
        "fingerprint IS NULL OR cost > 1.25": [3, 6],
        '"id" = 3 AND hop > 0': [3],
    }
    for where, ids in cases.items():
        found = read(store, ATTEMPTS, ["id"], where=where)
        assert [row["id"] for row in found] == ids, where
    write_rows(store, "messages", [full_row("messages", 1)])
    write_rows(store, "messages_archive", [full_row("messages_archive", 2)])
    archived = read(store, MESSAGES, ["id"], where="archived OR archived")
    assert [row["id"] for row in archived] == [2]
    write_rows(store, "events", [{**full_row("events", 1), "data": '{"hop": 3}'}])
    assert read(store, EVENTS, ["hop"], where="hop > 2") == [{"hop": 3}]


def test_the_job_reads_only_the_events_that_reports_need(store: Store) -> None:
    types = ["agent_progress", "message_enqueued", "response_acked", "response_dead"]
    rows = [{**full_row("events", n), "type": kind} for n, kind in enumerate(types, 1)]
    write_rows(store, "events", rows)
    names = [each.name for each in EVENTS.landed_columns]
    assert "data" not in names
    found = read(store, EVENTS, names, where=EVENTS.landed_rows)
    assert [row["type"] for row in found] == ["message_enqueued", "response_dead"]


def test_only_the_columns_asked_for_are_read(store: Store) -> None:
    write_rows(store, "attempts", [full_row("attempts", 1)])
    assert read(store, ATTEMPTS, ["cost", "agent"]) == [
        {key: full_row("attempts", 1)[key] for key in ("cost", "agent")}
    ]
    with pytest.raises(InputError, match=r"column 'agents' does not exist.*'agent'"):
        read(store, ATTEMPTS, ["agents"])
    with pytest.raises(InputError, match="fact table 'attempt' does not exist"):
        find_table("attempt")


def test_a_process_that_has_the_store_open_never_loads_a_second_library_of_sqlite(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would undo the locks of the other, and other processes delete what is in use."""
    monkeypatch.setattr(StoreAddress, "open", lambda _: pytest.fail("ADBC opened the file"))
    with stores.opened(stores.settings("sqlite")) as store:
        write_rows(store, "attempts", [full_row("attempts", 1)])
        (batch,) = read_range(StoreAddress(store.settings.url), ATTEMPTS, ["id"], FIRST)
    assert batch.to_pylist() == [{"id": 1}]


def test_tasks_of_spark_do_not_load_the_store(stores: Stores) -> None:
    """They would read SQLite by Python, at a fifth of the speed, and need SQLAlchemy."""
    code = "import sys, bullpen.reports.spark.source as _; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {"bullpen.core.store.sqlite", "sqlalchemy", "psycopg"} & {*loaded}


def test_no_statement_is_open_on_sqlite_while_a_batch_is_used(stores: Stores) -> None:
    with stores.opened(stores.settings("sqlite")) as store:
        write_rows(store, "attempts", [full_row("attempts", n) for n in range(1, 7)])
        table = replace(ATTEMPTS, batch_ids=2)
        batches = read_range(StoreAddress(store.settings.url), table, ["id"], IdRange(1, 6))
        wal = store.settings.home / "bullpen.db-wal"
        for batch in batches:
            write_rows(store, "attempts", [full_row("attempts", batch["id"][0].as_py() + 10)])
            # A reader in a transaction keeps the log from being emptied.
            with store.engine.connect() as connection:
                connection.rollback()
                driver = connection.connection.driver_connection
                assert driver is not None
                busy = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            assert not busy
            assert wal.stat().st_size == 0


def test_a_database_that_cannot_be_read_is_a_clear_error(
    stores: Stores, settings: Settings, store: Store
) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE attempts")
    with pytest.raises(StoreError, match=r"cannot read the table attempts: .*attempts"):
        read(store, ATTEMPTS)


def test_a_missing_file_is_not_created(stores: Stores) -> None:
    path = stores.directory / "absent #1%.db"
    address = StoreAddress(f"sqlite:///{path}")
    with pytest.raises(NotShared, match="does not exist on this machine"):
        list(read_range(address, ATTEMPTS, ["id"], FIRST))
    assert not path.exists()


@pytest.mark.postgres
def test_the_password_is_in_no_text(stores: Stores) -> None:
    password = "s3cr%2Ft-pa55"
    for url in (
        f"postgresql+psycopg://ada:{password}@127.0.0.1:1/company",
        f"postgresql://ada@127.0.0.1:1/company?password={password}",
        f"postgres://ada:{password}@127.0.0.1:notaport/company",
    ):
        address = StoreAddress(url)
        with pytest.raises(StoreUnavailable) as raised, address.open():
            pass
        shown = f"{address!r} {address} {raised.value} {raised.value.__cause__}"
        assert "s3cr" not in shown, url
        assert "pa55" not in shown, url
