"""The databases that are lent: each test finds its own as the migrations left it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.conformance.verbs import dump, events, hire, send
from tests.stores import Stores

pytestmark = pytest.mark.postgres

Use = Callable[[Stores, str], object]


@contextmanager
def _store(stores: Stores, name: str) -> Iterator[Store]:
    store = open_store(Settings(home=stores.directory, database_url=stores.server.url(name)))
    try:
        yield store
    finally:
        store.close()


def _lent_again(stores: Stores, use: Use) -> str | None:
    """Its name, if a database is lent to the next one after it was used like this."""
    with stores.clones.one() as first:
        use(stores, first)
    with stores.clones.one() as second:
        return first if first == second else None


def _sql(statement: str) -> Use:
    def run(stores: Stores, name: str) -> None:
        with stores.server.connect(name) as connection:
            connection.execute(statement.encode())

    return run


def test_what_one_wrote_the_next_does_not_find_and_its_numbers_begin_anew(stores: Stores) -> None:
    found = []

    def use(stores: Stores, name: str) -> None:
        with _store(stores, name) as store:
            found.append(dump(store))
            hire(store)
            send(store)
            assert dump(store) != found[0]

    name = _lent_again(stores, use)
    assert name is not None
    with _store(stores, name) as store:
        assert dump(store) == found[0]
        hire(store)
        assert events(store)[0]["id"] == 1


def test_a_number_that_was_taken_and_given_up_is_not_missing_afterwards(stores: Stores) -> None:
    name = _lent_again(stores, _sql("SELECT nextval('events_id_seq')"))
    assert name is not None
    with _store(stores, name) as store:
        hire(store)
        assert events(store)[0]["id"] == 1


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (id INTEGER)",
        "CREATE SCHEMA mine",
        "ALTER TABLE lanes ADD COLUMN surplus INTEGER",
        "ALTER TABLE events SET (autovacuum_enabled = false)",
        "ALTER TABLE lanes ALTER COLUMN pending DROP NOT NULL",
        "DROP INDEX ix_messages_ready",
        "CREATE FUNCTION mine() RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'",
        "UPDATE alembic_version SET version_num = 'ffff'",
    ],
)
def test_what_was_rebuilt_is_lent_to_nobody(stores: Stores, statement: str) -> None:
    assert _lent_again(stores, _sql(statement)) is None


def test_what_somebody_still_uses_is_lent_to_nobody(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.clones.GONE_SECONDS", 0.1)
    left: list[psycopg.Connection] = []
    assert _lent_again(stores, lambda _, name: left.append(stores.server.connect(name))) is None
    with pytest.raises(psycopg.OperationalError):
        left[0].execute("SELECT 1")
    left[0].close()
