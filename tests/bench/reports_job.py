"""reports_job: all reports by the job, beside DuckDB and pandas on the same rows.

Each contender is a process of its own, and they run one after the other. What is compared is their
processor time, which the load of the machine changes least.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bullpen.core.settings import Settings
from bullpen.ops.demo.plan import HistoryPlan
from bullpen.ops.demo.write import write_history
from tests.bench.measure import Measure, Unit
from tests.bench.reports_facts import copy_facts
from tests.bench.section import Bench, Section
from tests.bench.stores import sqlite_file

UNTIL = 1_795_176_000_000
"""2026-11-20T12:00:00Z"""
DAYS = 30
ZONE = "Europe/Berlin"
SEED = 1
SMALLER = 5
"""How many times fewer rows the run has whose memory is compared."""
LIMIT_SECONDS = 7200.0
PANDAS_BYTES = 4700
"""What pandas needs for a run with its events."""
GIB = 2**30
CONTENDERS = {name: f"tests.bench.peers.reports_{name}" for name in ("spark", "duckdb", "pandas")}


@dataclass(frozen=True, slots=True)
class _Rows:
    """A history, and the ids of attempts up to which parts of it go."""

    file: Path
    last: int

    def share(self, percent: float) -> int:
        """The id of the attempt with so many percent of all before it."""
        return int(self.last * percent / 100)


def reports_job(bench: Bench) -> Section:
    """A full run, one percent of new facts in a warm session and in a fresh process, and memory."""
    rows = _write_history(bench)
    base = _base(bench, rows, 98)
    top = bench.directory
    spark = _run("spark", base, top / "spark", more=f"{rows.file}:{rows.share(99)}")
    duckdb = _run("duckdb", _base(bench, rows, 98), top / "duckdb")
    pandas: dict[str, Any] | None = None
    needed = rows.last * PANDAS_BYTES
    if psutil.virtual_memory().available >= needed:
        pandas = _run("pandas", _base(bench, rows, 98), top / "pandas")
    else:
        bench.missing.append(f"pandas (it needs {needed / GIB:.0f} GiB of memory)")
    smaller = _run("spark", _base(bench, rows, 98 / SMALLER), top / "smaller")
    # As `report run` does it: a first run leaves the archive of classes for later ones.
    _run("spark", _base(bench, rows, 1), top / "archive", more="archive", home=base.home)
    copy_facts(rows.file, sqlite_file(base), rows.last)
    fresh = _run("spark", base, top / "spark")
    again = _run("duckdb", base, top / "all")
    full, warm, cold = spark["first"], spark["second"], fresh["first"]
    beyond = full["cpu"] - full["start"]
    note = f"{rows.last} attempts"
    return Section(
        [
            *_used("all reports, spark", full, note),
            *_used("all reports, duckdb", duckdb, note),
            *([] if pandas is None else _beside_pandas(full, pandas, note)),
            _ratio("all reports beyond start, CPU: spark : duckdb", beyond, duckdb["cpu"]),
            _ratio("landing, CPU: spark : duckdb", full["land"], duckdb["land"]),
            _ratio("1 % new, warm session, CPU : full run", warm["cpu"], beyond),
            _ratio("1 % new, fresh process, CPU : full run", cold["cpu"] - cold["start"], beyond),
            _ratio(
                f"driver's memory : with {SMALLER} times fewer",
                full["driver"],
                smaller["first"]["driver"],
            ),
        ],
        {"spark's increments and duckdb gave the same rows": _same(top / "spark", again)},
    )


def _write_history(bench: Bench) -> _Rows:
    settings = bench.stores.settings("sqlite")
    plan = HistoryPlan.from_settings(
        settings, seed=SEED, attempts=bench.scale.attempts, days=DAYS, until=UNTIL
    )
    write_history(settings, plan, lambda _: None)
    file = sqlite_file(settings)
    with closing(sqlite3.connect(file)) as database:
        (last,) = database.execute("SELECT max(id) FROM attempts").fetchone()
    return _Rows(file, last)


def _base(bench: Bench, rows: _Rows, percent: float) -> Settings:
    """A store with the first part of the facts."""
    settings = bench.stores.settings("sqlite")
    copy_facts(rows.file, sqlite_file(settings), rows.share(percent))
    return settings


def _run(
    name: str, settings: Settings, directory: Path, more: str = "", home: Path | None = None
) -> dict[str, Any]:
    """Run a contender; returns what it printed. Spark's may have another home than the store."""
    directory.mkdir(exist_ok=True)
    homes = [str(home or settings.home)] if name == "spark" else []
    url = f"sqlite:///{sqlite_file(settings)}"
    line = [sys.executable, "-m", CONTENDERS[name], *homes, url, str(directory), ZONE]
    done = subprocess.run(
        [*line, more] if more else line,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{name} ended with {done.returncode}: {done.stderr[-4000:]}")
    return {"directory": str(directory), **json.loads(done.stdout.splitlines()[-1])}


def _used(what: str, used: dict[str, Any], note: str) -> list[Measure]:
    return [
        Measure(f"{what}: CPU", Unit.SECONDS, [used["cpu"]], note),
        Measure(f"{what}: wall", Unit.SECONDS, [used["wall"]], note),
        Measure(f"{what}: memory", Unit.MIB, [used["memory"]], note),
    ]


def _beside_pandas(spark: dict[str, Any], pandas: dict[str, Any], note: str) -> list[Measure]:
    return [
        *_used("all reports, pandas", pandas, note),
        _ratio("all reports, wall: spark : pandas", spark["wall"], pandas["wall"]),
        _ratio("all reports, memory: spark : pandas", spark["memory"], pandas["memory"]),
    ]


def _ratio(what: str, value: float, other: float) -> Measure:
    return Measure(what, Unit.RATIO, [value / other])


def _same(spark: Path, duckdb: dict[str, Any]) -> bool:
    """Whether the files of the last manifest have the rows that DuckDB computed."""
    import duckdb as engine

    manifest = json.loads((spark / "manifest.json").read_text())
    with engine.connect() as database:
        for name, files in manifest["results"].items():
            paths = [str(spark / each["name"]) for each in files]
            ours = f"read_parquet({paths}, hive_partitioning = false)"
            described = database.execute(f"DESCRIBE FROM {ours}").fetchall()
            columns = ", ".join(f'"{each[0]}"' for each in described)
            theirs = f"'{duckdb['directory']}/results/{name}.parquet'"
            for one, other in ((ours, theirs), (theirs, ours)):
                query = f"SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other}"
                if database.execute(f"FROM ({query}) LIMIT 1").fetchone() is not None:
                    return False
    return True
