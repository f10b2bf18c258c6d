"""Waiting: interrupted at once, found out without a hint, taken up again after a loss."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import cast

import pytest
from sqlalchemy import text

from bullpen.core.store.base import Store
from bullpen.core.store.postgres import PostgresStore
from bullpen.core.wake.listener import ALL_TOPICS
from tests.stores import Stores
from tests.wake.listening import NO_POLL, SOON, heard, listening, open_lane, send


@pytest.fixture
def polling(stores: Stores, kind: str) -> Iterator[Store]:
    """A store whose listeners also look by themselves."""
    with stores.opened(stores.settings(kind, poll_seconds=0.2)) as opened:
        yield opened


def test_an_interrupt_ends_a_wait_at_once(store: Store) -> None:
    with listening(store) as listener:
        took: list[float] = []

        def wait() -> None:
            began = time.monotonic()
            listener.wait(120)
            took.append(time.monotonic() - began)

        thread = threading.Thread(target=wait)
        thread.start()
        listener.interrupt()
        thread.join(SOON)
        assert len(took) == 1


def test_an_interrupt_before_the_wait_ends_it_too(store: Store) -> None:
    with listening(store) as listener:
        listener.interrupt()
        began = time.monotonic()
        listener.wait(120)
        assert time.monotonic() - began < SOON


def test_a_wait_for_nothing_ends_with_nothing_after_its_timeout(store: Store) -> None:
    with listening(store) as listener:
        listener.wait(0.0)
        began = time.monotonic()
        assert listener.wait(0.1) == frozenset()
        assert 0.09 <= time.monotonic() - began < SOON
        assert listener.wait(0.0) == frozenset()


def test_a_lost_hint_is_made_good_by_a_look_within_moments(polling: Store) -> None:
    listener = polling.listen()
    try:
        open_lane(polling)
        began = time.monotonic()
        heard_something = frozenset[str]()
        send(polling)
        while not heard_something:
            heard_something = listener.wait(5)
            assert time.monotonic() - began < SOON
        if polling.dialect == "sqlite":
            assert heard_something == ALL_TOPICS
    finally:
        listener.close()


def test_when_nothing_was_written_sqlite_looks_and_says_nothing(stores: Stores) -> None:
    with stores.opened(stores.settings("sqlite", poll_seconds=0.02)) as quiet:
        listener = quiet.listen()
        assert listener.wait(0.2) == frozenset()
        listener.close()


@pytest.fixture
def on_postgres(stores: Stores) -> Iterator[Store]:
    """A store on PostgreSQL whose listeners are never woken by their own poll."""
    with stores.opened(stores.settings("postgresql", poll_seconds=1.0)) as opened:
        yield opened


def hang_up(store: Store) -> None:
    """Let the server end every connection that listens."""
    with store.engine.begin() as connection:
        ended = connection.execute(
            text(
                "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
            )
        ).scalar_one()
    assert cast("int", ended) >= 1


@pytest.mark.postgres
def test_a_listener_whose_connection_was_ended_says_anything_and_listens_again(
    on_postgres: Store,
) -> None:
    store = on_postgres
    open_lane(store)
    with listening(store) as listener:
        hang_up(store)
        assert listener.wait(SOON) == ALL_TOPICS
        listener.wait(0.1)
        send(store)
        assert heard(listener, "messages")


@pytest.mark.postgres
def test_a_listener_whose_connection_is_ended_while_it_waits_says_anything(
    stores: Stores,
) -> None:
    settings = stores.settings("postgresql", **NO_POLL)
    with stores.opened(settings) as store, listening(store) as listener:
        got: list[frozenset[str]] = []

        def wait() -> None:
            deadline = time.monotonic() + SOON
            while ALL_TOPICS not in got and time.monotonic() < deadline:
                got.append(listener.wait(1.0))

        thread = threading.Thread(target=wait)
        thread.start()
        hang_up(store)
        thread.join(SOON + 5)
        assert ALL_TOPICS in got


@pytest.mark.postgres
def test_a_listener_whose_server_cannot_be_reached_goes_on_and_says_anything(
    stores: Stores,
) -> None:
    settings = stores.settings("postgresql", poll_seconds=0.1)
    with stores.opened(settings) as store:
        assert isinstance(store, PostgresStore)
        open_lane(store)
        listener = store.listen()
        hang_up(store)
        reachable = store.url
        store.url = reachable.set(port=1)
        for _ in range(3):
            assert listener.wait(0.2) == ALL_TOPICS
        store.url = reachable
        listener.wait(0.0)
        send(store)
        assert heard(listener, "messages")
        listener.close()
