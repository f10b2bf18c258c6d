"""PostgreSQL stops, crashes and comes back while everybody works on."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bullpen.core.errors import DuplicateMessage, StoreError
from bullpen.core.settings import Settings
from bullpen.core.store import migrate
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.crash.account import Account, settled
from tests.crash.children import Children, lines, until
from tests.crash.load import Record, toil
from tests.crash.processors import ask, processing, wait_for_states, wait_for_workers
from tests.crash.recovery import later, run_to_the_end
from tests.crash.work import open_lanes
from tests.postgres import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

WORKERS = 4
ROUNDS = 2
BACK_SECONDS = 120.0
"""Generous; they are back within two."""

_NUMBERS = itertools.count()

Outage = Callable[[PostgresServer], None]


def _fast(server: PostgresServer) -> None:
    server.stop("fast")


def _immediate(server: PostgresServer) -> None:
    server.stop("immediate")


def _killed(server: PostgresServer) -> None:
    server.kill()


OUTAGES = [_fast, _immediate, _killed]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of one's own, which keeps what it committed."""
    made = PostgresServer(durable=True)
    made.start()
    yield made
    made.close()


@pytest.fixture
def settings(server: PostgresServer, tmp_path: Path) -> Settings:
    """An empty store on that server."""
    home = tmp_path / "home"
    home.mkdir()
    name = f"outage{next(_NUMBERS)}"
    server.create_database(name)
    made = Settings(
        home=home, database_url=server.url(name), lease_seconds=2, delivery_lease_seconds=2
    )
    with closing(open_store(made, check=False)) as store:
        migrate.upgrade(store)
        open_lanes(store)
    return made


@pytest.mark.parametrize("outage", OUTAGES, ids=["fast", "immediate", "killed"])
def test_workers_that_repeat_what_failed_lose_nothing_and_do_nothing_twice(
    server: PostgresServer,
    settings: Settings,
    children: Children,
    tmp_path: Path,
    outage: Outage,
) -> None:
    record = Record(tmp_path)
    workers = [children.start(toil, settings, record, True) for _ in range(WORKERS)]
    for _ in range(ROUNDS):
        _wait_for_progress(record)
        outage(server)
        server.start()
    _wait_for_progress(record)
    for worker in workers:
        worker.send(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0] * WORKERS
    children.check()
    with later(settings) as store:
        run_to_the_end(store, record.platform)
        account = Account(store)
        settled(account, lines(record.accepted), lines(record.intended))
        # Nobody died, so that what anybody meant to send was accepted in the end.
        assert sorted(lines(record.accepted)) == sorted(lines(record.intended))
        account.check()
        account.check_order()
        account.check_deliveries(record.platform)
        assert lines(record.overlaps) == []


def _wait_for_progress(record: Record) -> None:
    """Until some more messages were accepted, and parts of answers sent."""
    before = len(lines(record.accepted)), len(lines(record.platform.path))
    until(
        lambda: (
            len(lines(record.accepted)) > before[0] + 20
            and len(lines(record.platform.path)) > before[1] + 20
        ),
        "the work goes on",
        BACK_SECONDS,
    )


@pytest.mark.parametrize("outage", OUTAGES, ids=["fast", "immediate", "killed"])
def test_processors_survive_their_server_and_go_on_when_it_is_back(
    server: PostgresServer, settings: Settings, outage: Outage
) -> None:
    agents = ("alpha", "beta", "crowd")
    with (
        closing(open_store(settings)) as store,
        processing(settings, 2, lease_seconds=3, max_crashes=100) as processors,
    ):
        wait_for_workers(store, 2)
        count = 0
        for number in range(ROUNDS):
            for agent in agents:
                # One is running while the server goes away, the other one waits.
                ask(store, agent, "!sleep 0.5\n!say a", "!say b", prefix=f"before{number}")
            outage(server)
            server.start()
            for agent in agents:
                _ask_until_taken(store, agent, f"after{number}")
            count += 3 * len(agents)
            wait_for_states(store, {"completed": count}, BACK_SECONDS)
        assert len(processors.alive()) == 2
        processors.stop()
    with closing(open_store(settings)) as store:
        account = Account(store)
        for message_id, row in account.messages.items():
            assert row["status"] == "completed"
            assert account.outcomes(message_id).count("completed") <= 1
            assert set(account.outcomes(message_id)) <= {"completed", "crashed"}
        assert sum(len(found) for found in account.responses.values()) == sum(
            "completed" in account.outcomes(message_id) for message_id in account.messages
        )


def _ask_until_taken(store: Store, agent: str, prefix: str) -> None:
    def taken() -> bool:
        try:
            ask(store, agent, "!say c", prefix=prefix)
        except StoreError:
            return False
        except DuplicateMessage:
            return True
        return True

    until(taken, "the message is accepted", BACK_SECONDS)
