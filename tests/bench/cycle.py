"""cycle: Bullpen beside its floor and its peers on SQLite; postgres: beside those on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bullpen.core.settings import Durability
from bullpen.core.store.open import open_store
from tests.bench.floor import Floor, record, same
from tests.bench.laps import Bullpen
from tests.bench.measure import Measure
from tests.bench.peers import Durability as PeerDurability
from tests.bench.peers import Peer
from tests.bench.peers.huey import HueyPeer
from tests.bench.peers.litequeue import LiteQueuePeer
from tests.bench.peers.persist_queue import PersistQueuePeer
from tests.bench.peers.pgqueuer import PgQueuerPeer
from tests.bench.peers.procrastinate import ProcrastinatePeer
from tests.bench.peers.tinyagi import TinyAGIPeer
from tests.bench.race import Contender, open_peers, phases, race
from tests.bench.section import Bench, Section
from tests.bench.stores import open_sqlite

BATCH = 32
HUNDRED = 100
BATCHES = 1
"""How many batches are in a turn."""


def cycle(bench: Bench) -> Section:
    """Single messages and batches on SQLite, durable and fast."""
    measures: list[Measure] = []
    checks: dict[str, bool] = {}
    for durability in Durability:
        found, equal = _sqlite(bench, durability.value)
        measures += found
        checks[f"the floor, {durability}, wrote the same rows"] = equal
    return Section(measures, checks)


def postgres(bench: Bench) -> Section:
    """Single messages and batches on PostgreSQL."""
    scale = bench.scale
    url = bench.stores.postgres_url("peers").replace("postgresql+psycopg", "postgresql")
    peers: dict[str, Callable[[], Peer]] = {
        "procrastinate": lambda: ProcrastinatePeer(url),
        "pgqueuer": lambda: PgQueuerPeer(url),
    }
    ours = Bullpen(open_store(bench.stores.with_lanes("postgresql", 1)))
    contenders = [ours, *open_peers(peers, bench.missing)]
    measures, _ = race("cycle, postgresql", contenders, scale, scale.cycles, 1)
    batches, _ = race("batch of 32, postgresql", contenders, scale, BATCHES, BATCH)
    _close(contenders)
    return Section([*measures, *batches])


def _sqlite(bench: Bench, durability: PeerDurability) -> tuple[list[Measure], bool]:
    turns = bench.scale.warm_up + bench.scale.rounds
    plan = {1: bench.scale.cycles, BATCH: BATCHES, HUNDRED: 1}
    recorded = bench.stores.with_lanes("sqlite", 1, fast=durability == "fast")
    replayed, ours = bench.stores.copy(recorded), bench.stores.copy(recorded)
    recording = record(recorded, [(turns * count, size) for size, count in plan.items()])
    floor = Floor(replayed, recording)
    contenders: list[Contender] = [Bullpen(open_sqlite(ours)), floor]
    peers = open_peers(_peers(bench.directory / durability, durability), bench.missing)
    measures: list[Measure] = []
    for size, count in plan.items():
        title = f"cycle, {durability}" if size == 1 else f"batch of {size}, {durability}"
        racing = contenders if size == HUNDRED else contenders + peers
        found, results = race(title, racing, bench.scale, count, size)
        if size == HUNDRED:
            measures += phases(durability, size, results, ["enqueue"])
        else:
            measures += [*found, *phases(durability, size, results)]
    _close(contenders + peers)
    return measures, same(recorded, replayed)


def _peers(directory: Path, durability: PeerDurability) -> dict[str, Callable[[], Peer]]:
    directory.mkdir()
    return {
        "huey": lambda: HueyPeer(directory, durability),
        "litequeue": lambda: LiteQueuePeer(directory, durability),
        "persist-queue": lambda: PersistQueuePeer(directory, durability),
        "tinyagi": lambda: TinyAGIPeer(directory, durability),
    }


def _close(contenders: list[Contender]) -> None:
    for each in contenders:
        each.close()
