"""A backup taken while processes use the store as hard as they can, and a home made of it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from bullpen.core.models import MESSAGES, RESPONSES
from bullpen.core.outbox.manage import list_backlog
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.ops.backup.release_hold import release_hold
from tests.backup.homes import left_in, made_of, store_of, take_backup, take_until
from tests.cli.command import Bullpen
from tests.crash.account import Account, check_integrity, rows, settled
from tests.crash.children import Children, lines, until
from tests.crash.load import Record, toil
from tests.crash.recovery import run_to_the_end
from tests.crash.work import CHANNEL, PARTS, Platform, deliver_all, open_lanes
from tests.stores import Stores

PROCESSES = 3
BEFORE, DURING = 150, 50
LONG = 200.0
LEASE_SECONDS = 4  # some runs of the load outlast theirs, and are waited for


@pytest.fixture
def busy(stores: Stores, kind: str) -> Settings:
    """A home whose lanes the load knows."""
    made = stores.settings(kind, lease_seconds=LEASE_SECONDS, delivery_lease_seconds=LEASE_SECONDS)
    with stores.opened(made) as store:
        open_lanes(store)
    return made


@pytest.mark.slow
def test_every_row_of_before_is_in_it_nothing_is_half_and_all_goes_out_once(
    busy: Settings, kind: str, stores: Stores, children: Children, tmp_path: Path
) -> None:
    record, place = Record(tmp_path), tmp_path / "b"
    workers = [children.start(toil, busy, record, False) for _ in range(PROCESSES)]
    until(lambda: len(lines(record.accepted)) > BEFORE, "the load is on its way", LONG)
    store = open_store(busy)
    before = lines(record.accepted)
    path = take_backup(store, place).backup.path
    _kill_one_in_the_middle(busy, place, children)
    assert left_in(place) == [path.name]
    reached = len(lines(record.accepted)) + DURING
    until(lambda: len(lines(record.accepted)) > reached, "the load goes on afterwards", LONG)
    for worker in workers:
        worker.send(signal.SIGTERM)
    for worker in workers:
        worker.wait()
    store.close()
    url = ""
    if kind == "postgresql":
        stores.server.create_database("restored_load")
        url = stores.server.url("restored_load")
    home = made_of(path, tmp_path / "new", url).home
    with store_of(home, url) as new:
        check_integrity(new)
        there = {row["message_id"] for row in rows(new, MESSAGES)}
        assert set(before) <= there
        assert not set(lines(record.accepted)) <= there, "it is of a moment, and that is over"
        _nothing_goes_out(new, Platform(tmp_path / "silent"))
        _everything_goes_out_once(new, home, url, Platform(tmp_path / "platform-of-the-copy"))
        account = Account(new)
        settled(account, before, lines(record.intended))
        account.check()
        account.check_order()


def _kill_one_in_the_middle(settings: Settings, place: Path, children: Children) -> None:
    child = children.start(take_until, settings, place, 1)
    child.wait_until_stopped()
    child.kill()


def _nothing_goes_out(new: Store, platform: Platform) -> None:
    """However often a client asks, and whatever is answered meanwhile."""
    deliver_all(new, platform)
    run_to_the_end(new, platform)
    deliver_all(new, platform)
    assert platform.everything() == {}
    with new.read() as tx:
        assert sum(each.count for each in list_backlog(tx) if each.channel == CHANNEL) > 0


def _everything_goes_out_once(new: Store, home: Path, url: str, platform: Platform) -> None:
    waiting = {
        row["id"]: row["parts_sent"] for row in rows(new, RESPONSES) if row["status"] == "pending"
    }
    environ = {"BULLPEN_DATABASE_URL": url} if url else {}
    told = Bullpen(home, environ).ok("db", "release", "--yes", "--json").json
    assert told["responses"] == len(waiting)
    deliver_all(new, platform)
    deliver_all(new, platform)
    # Of one that had only not been acknowledged nothing is left to send.
    missing = {response: list(range(sent, PARTS)) for response, sent in waiting.items()}
    assert platform.everything() == {each: parts for each, parts in missing.items() if parts}
    ended = {row["id"]: row["status"] for row in rows(new, RESPONSES)}
    assert {ended[each] for each in waiting} == {"acked"}
    assert release_hold(new) is None
