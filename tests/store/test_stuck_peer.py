"""PostgreSQL: what stands still costs only what it holds, and everything ends in time."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import psycopg
import pytest
from sqlalchemy.engine import make_url

from bullpen.core.answers.leases import end_expired_claims
from bullpen.core.errors import StoreBusy, StoreError, StoreUnavailable
from bullpen.core.models import ATTEMPTS
from bullpen.core.settings import Settings
from bullpen.core.store import postgres, postgres_pipeline
from bullpen.core.store.base import Store
from bullpen.core.store.postgres import PostgresStore
from bullpen.core.store.postgres_errors import translate_connect_error
from tests.cli.command import PROGRAM
from tests.conformance.verbs import hire, lane, lane_row, message, rows, send
from tests.postgres import PostgresServer
from tests.processor.working import Scripted, eventually, processing
from tests.stores import Stores

pytestmark = pytest.mark.postgres

SLACK = 1.5
"""What a loaded machine may add."""


@pytest.fixture
def settings(stores: Stores) -> Settings:
    """Two seconds are the longest wait."""
    return stores.settings("postgresql", busy_seconds=2, lease_seconds=2)


@pytest.fixture
def store(stores: Stores, settings: Settings) -> Iterator[PostgresStore]:
    """A store of this process, at the present time."""
    with stores.opened(settings) as opened:
        assert isinstance(opened, PostgresStore)
        yield opened


@pytest.fixture
def peer(store: PostgresStore) -> Iterator[psycopg.Connection[object]]:
    """A connection of somebody else's."""
    with store.connect() as connection:
        yield connection


def lock(peer: psycopg.Connection[object], agent: str) -> None:
    """Let the peer stand still with this lane."""
    peer.execute("BEGIN")
    peer.execute("SELECT 1 FROM lanes WHERE agent = %s FOR UPDATE", (agent,))


def timed(work: Callable[[], object]) -> tuple[float, StoreError | None]:
    """How long it took, and its error."""
    began = time.monotonic()
    try:
        work()
    except StoreError as error:
        return time.monotonic() - began, error
    return time.monotonic() - began, None


def test_writers_to_a_locked_lane_are_told_in_time_and_no_other_lane_waits(
    store: PostgresStore, peer: psycopg.Connection[object]
) -> None:
    lane(store, "locked")
    lane(store, "free")
    lock(peer, "locked")
    with ThreadPoolExecutor(60) as pool:
        told = [pool.submit(timed, lambda: send(store, agent="locked")) for _ in range(60)]
        time.sleep(postgres.LANE_PATIENCE_SECONDS + 0.2)
        took, error = timed(lambda: send(store, agent="free"))
        assert error is None
        assert took < SLACK
        results = [each.result() for each in told]
    assert all(isinstance(error, StoreBusy) for _, error in results)
    # The first waits for the peer, the others for the first and then for the peer.
    assert max(took for took, _ in results) < 2 * 2 + SLACK
    assert sum(took > 1.9 for took, _ in results) <= postgres.WAITING_PER_LANE
    peer.execute("ROLLBACK")
    assert timed(lambda: send(store, agent="locked"))[1] is None


def test_a_locked_lane_keeps_no_other_run_from_being_renewed(
    store: PostgresStore, peer: psycopg.Connection[object]
) -> None:
    provider = Scripted()
    agents = ("l", "m1", "m2")
    for agent in agents:
        hire(store, agent)
        send(store, agent=agent, message_id=f"api_{agent}")
    with processing(store, provider):
        eventually(lambda: len(provider.turns) == 3, "they run")
        lock(peer, "l")
        seen = {agent: lane_row(store, agent)["lease_expires_at"] for agent in agents}
        until = time.monotonic() + 6.0
        while time.monotonic() < until:
            assert end_expired_claims(store) == 0
            time.sleep(0.5)
        for agent in ("m1", "m2"):
            assert lane_row(store, agent)["lease_expires_at"] >= seen[agent] + 4000
        peer.execute("ROLLBACK")
        eventually(lambda: lane_row(store, "l")["lease_expires_at"] > seen["l"], "it is renewed")
        provider.let_go.set()
        eventually(
            lambda: [row["outcome"] for row in rows(store, ATTEMPTS)] == ["completed"] * 3,
            "all are answered",
        )
    assert [message(store, f"api_{agent}")["crash_count"] for agent in agents] == [0, 0, 0]


def test_a_process_has_no_more_connections_than_it_may_and_nobody_is_turned_away_for_it(
    stores: Stores,
) -> None:
    settings = stores.settings("postgresql", database_connections=3)
    with stores.opened(settings) as store:
        lane(store)
        most: list[int] = []

        def work() -> None:
            with store.write() as tx:
                tx.fetch("SELECT pg_sleep(0.05)")
                row = tx.fetch(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND backend_type = 'client backend'"
                )
                assert row is not None
                most.append(int(str(row[0])))

        with ThreadPoolExecutor(20) as pool:
            for each in [pool.submit(work) for _ in range(20)]:
                each.result()
        assert len(most) == 20
        assert max(most) <= 3


def test_names_of_lanes_that_nobody_waits_for_are_not_kept(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "MAX_LANE_PERMITS", 3)
    waited_for = store.lane_permits("waited for")
    assert waited_for.acquire(0)
    for number in range(20):
        store.lane_permits(f"invented{number}")
        assert len(store._lane_permits) <= 3
    assert store.lane_permits("waited for") is waited_for


def test_a_server_that_takes_no_more_connections_is_busy() -> None:
    url = make_url("postgresql://ann@db.example.org/bullpen")
    for text in ("sorry, too many clients already", "remaining connection slots are reserved"):
        assert isinstance(translate_connect_error(psycopg.OperationalError(text), url), StoreBusy)


@pytest.fixture
def frozen(store: Store, stores: Stores) -> Iterator[PostgresServer]:
    """The server, all of whose processes stand still."""
    with store.read() as tx:
        tx.fetch("SELECT 1")
    postmaster = psutil.Process(stores.server.pid)
    processes = [postmaster, *postmaster.children()]
    for each in processes:
        each.suspend()
    try:
        yield stores.server
    finally:
        for each in reversed(processes):
            each.resume()


@pytest.mark.usefixtures("frozen")
def test_a_server_that_answers_nothing_is_an_error_in_time(
    settings: Settings, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_pipeline, "SILENCE_SECONDS", 0.5)
    monkeypatch.setattr(postgres, "CONNECT_SECONDS", 2)
    took, error = timed(lambda: send(store))
    assert isinstance(error, StoreUnavailable)
    assert "no longer answers" in str(error)
    assert took < 4 + 2 * SLACK
    began = time.monotonic()
    environ = {**os.environ, "BULLPEN_HOME": str(settings.home)}
    environ["BULLPEN_DATABASE_URL"] = f"{settings.url}?connect_timeout=2"
    done = subprocess.run(
        [*PROGRAM, "status"], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert "does not answer" in done.stdout
    assert time.monotonic() - began < 20


def test_a_statement_that_waits_is_not_given_up_while_the_server_answers_others(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_pipeline, "SILENCE_SECONDS", 0.1)
    with store.read() as tx:
        assert tx.fetch("SELECT 1 FROM pg_sleep(1)") == (1,)


def test_what_the_url_says_of_a_connection_wins(stores: Stores, settings: Settings) -> None:
    url = f"{settings.url}?connect_timeout=7&options=-c%20lock_timeout%3D123ms"
    changed = Settings(home=settings.home, database_url=url)
    with stores.opened(changed) as store, store.read() as tx:
        assert tx.fetch("SHOW lock_timeout") == ("123ms",)
        assert tx.fetch("SHOW statement_timeout") == ("5min",)
