"""kill -9 at any moment: processes under full load, killed one after the other."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from bullpen.core.settings import Settings
from tests.crash.account import Account, check_integrity, settled
from tests.crash.children import Child, Children, lines, until
from tests.crash.load import Record, toil
from tests.crash.recovery import later, run_to_the_end
from tests.crash.work import open_lanes
from tests.stores import Stores

KILLS = int(os.environ.get("CRASH_KILLS", "40"))
PROCESSES = 4
LEASE_SECONDS = 2


@pytest.fixture
def settings(stores: Stores, kind: str) -> Settings:
    """Short leases, so that the dead are followed up while the killing goes on."""
    made = stores.settings(kind, lease_seconds=LEASE_SECONDS, delivery_lease_seconds=LEASE_SECONDS)
    with stores.opened(made) as store:
        open_lanes(store)
    return made


@pytest.mark.slow
def test_random_kills_lose_nothing_and_repeat_nothing(
    settings: Settings, children: Children, tmp_path: Path
) -> None:
    record = Record(tmp_path)
    chance = random.Random(os.urandom(8))
    workers = [_start(children, settings, record) for _ in range(PROCESSES)]
    for number in range(KILLS):
        # However slow the machine is, something is done between the kills.
        until(lambda: len(lines(record.accepted)) >= number // 2, "messages are accepted")  # noqa: B023
        time.sleep(chance.uniform(0.02, 0.08))
        place = chance.randrange(PROCESSES)
        workers[place].kill()
        workers[place] = _start(children, settings, record)
    for worker in workers:
        worker.kill()
    children.check()
    _settle_accounts(settings, record)


def _start(children: Children, settings: Settings, record: Record) -> Child:
    return children.start(toil, settings, record, False)


def _settle_accounts(settings: Settings, record: Record) -> None:
    with later(settings) as store:
        run_to_the_end(store, record.platform)
        account = Account(store)
        settled(account, lines(record.accepted), lines(record.intended))
        account.check()
        account.check_order()
        account.check_deliveries(record.platform)
        assert lines(record.overlaps) == []
        assert len(account.completed) > KILLS / 4, "hardly anything was done between the kills"
        check_integrity(store)
