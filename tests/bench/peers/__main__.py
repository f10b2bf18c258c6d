"""Try the peers alone: `python -m tests.bench.peers [--postgres URL]`."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Final, get_args

from . import Durability, Peer, postgres_peers, sqlite_peers

COUNT: Final = 500
ROUNDS: Final = 3
SIZE: Final = 32


def show(title: str, peers: Sequence[Peer]) -> None:
    """Run the peers in interleaved rounds, print a row for each and close them."""
    cycles: dict[str, list[list[float]]] = {peer.name: [] for peer in peers}
    batches: dict[str, list[float]] = {peer.name: [] for peer in peers}
    try:
        for _ in range(ROUNDS):
            for peer in peers:
                cycles[peer.name].append(peer.cycle(COUNT))
            for peer in peers:
                batches[peer.name].append(COUNT / peer.batch(COUNT, SIZE))
    finally:
        for peer in peers:
            peer.close()
    print(f"{title:20} {'p50 us':>9} {'p99 us':>9} {'cycles/s':>9} {'batched/s':>10}  each round")
    for name, rounds in cycles.items():
        middle = median(median(seconds) for seconds in rounds) * 1e6
        tail = median(quantiles(seconds, n=100)[98] for seconds in rounds) * 1e6
        rate = median(COUNT / sum(seconds) for seconds in rounds)
        each = " ".join(f"{COUNT / sum(seconds):.0f}" for seconds in rounds)
        each += " | " + " ".join(f"{rate:.0f}" for rate in batches[name])
        print(
            f"{name:20} {middle:9.0f} {tail:9.0f} {rate:9.0f} {median(batches[name]):10.0f}  {each}"
        )
    print()


def main() -> None:
    """Run all SQLite peers, and those of PostgreSQL where a database is given."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    parser.add_argument("--postgres", metavar="URL", help="an empty database to set up in")
    arguments = parser.parse_args()
    for durability in get_args(Durability):
        with TemporaryDirectory(prefix="bullpen-peers-") as directory:
            show(f"sqlite, {durability}", sqlite_peers(Path(directory), durability))
    if arguments.postgres:
        show("postgresql", postgres_peers(arguments.postgres))


if __name__ == "__main__":
    main()
