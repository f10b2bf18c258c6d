"""Every database has an identity of its own, which it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from bullpen.core.errors import StoreMissing
from bullpen.core.settings import Settings
from bullpen.core.store import migrate
from bullpen.core.store.identity import store_id
from bullpen.core.store.open import open_store


def _identity(settings: Settings) -> str:
    store = open_store(settings, check=False)
    try:
        migrate.upgrade(store)
        with store.read() as tx:
            return store_id(tx)
    finally:
        store.close()


def test_two_databases_differ_and_each_stays_what_it_is(tmp_path: Path) -> None:
    homes = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        homes.append(Settings(home=tmp_path / name, workspace=tmp_path / name / "w"))
    first, second = map(_identity, homes)
    assert len(first) == len(second) == 16
    assert first != second
    assert [_identity(each) for each in homes] == [first, second]


def test_a_database_without_its_identity_is_an_error(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, workspace=tmp_path / "w")
    _identity(settings)
    store = open_store(settings)
    with store.engine.begin() as connection:
        connection.execute(text("DELETE FROM store_identity"))
    with store.read() as tx, pytest.raises(StoreMissing):
        store_id(tx)
    store.close()
