"""`python -m tests.bench`: measures Bullpen's queue beside its floor and its peers."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench import report
from tests.bench.archiving import archiving
from tests.bench.channels import channels
from tests.bench.command import command
from tests.bench.cycle import cycle, postgres
from tests.bench.depth import depth
from tests.bench.machine import facts
from tests.bench.post import post
from tests.bench.processes import processes
from tests.bench.reports_job import reports_job
from tests.bench.reports_pages import reports_pages
from tests.bench.reports_source import reports_source
from tests.bench.reports_start import reports_start
from tests.bench.reports_writers import reports_writers
from tests.bench.runs import runs
from tests.bench.scale import FULL, QUICK
from tests.bench.section import Bench, Section
from tests.bench.stores import BenchStores
from tests.bench.streams import streams
from tests.bench.ticks import ticks
from tests.bench.wake import wake

SECTIONS: dict[str, Callable[[Bench], Section]] = {
    "cycle": cycle,
    "postgres": postgres,
    "processes": processes,
    "archiving": archiving,
    "depth": depth,
    "wake": wake,
    "ticks": ticks,
    "runs": runs,
    "streams": streams,
    "post": post,
    "command": command,
    "reports_start": reports_start,
    "channels": channels,
    "reports_job": reports_job,
    "reports_pages": reports_pages,
    "reports_source": reports_source,
    "reports_writers": reports_writers,
}
RESULTS = Path(__file__).resolve().parents[2] / "bench-results"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what was asked for."""
    options = _parse(arguments)
    scale = QUICK if options.quick else FULL
    if options.rounds:
        scale = replace(scale, rounds=options.rounds, depth_rounds=options.rounds)
    if options.attempts:
        scale = replace(scale, attempts=options.attempts)
    with TemporaryDirectory(prefix="bullpen-bench-", dir=options.dir) as directory:
        bench = Bench(BenchStores(Path(directory)), scale)
        try:
            run(options.only or list(SECTIONS), bench, options.json)
        finally:
            bench.stores.close()


def run(names: Sequence[str], bench: Bench, json: Path | None = None) -> None:
    """Measure these sections, print the table and write the JSON."""
    path = json or RESULTS / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}.json"
    machine = facts(bench.stores)
    sections = {name: _timed(name, bench) for name in SECTIONS if name in names}
    print(report.table(sections))
    print(report.summary(sections, bench.missing))
    report.write(path, sections, machine, bench.missing)
    print(f"\nAll numbers are in {path}")


def _timed(name: str, bench: Bench) -> Section:
    started = time.monotonic()
    print(f"{name} ...", end=" ", flush=True, file=sys.stderr)
    section = SECTIONS[name](bench)
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    return section


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller histories")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=_names())
    parser.add_argument("--rounds", type=int, metavar="N", help="turns of each contender")
    parser.add_argument("--attempts", type=int, metavar="N", help="runs that the reports describe")
    parser.add_argument("--json", type=Path, metavar="PATH", help="where the numbers go")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="where the databases lie meanwhile")
    return parser.parse_args(arguments)


def _names() -> str:
    return "only these: " + ", ".join(SECTIONS)


if __name__ == "__main__":
    main()
