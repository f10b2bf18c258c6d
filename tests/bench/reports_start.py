"""reports_start: how soon Spark is ready, with the class archive and without, C1 only or not."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

from tests.bench.measure import Measure, Unit
from tests.bench.rounds import interleave, ratios
from tests.bench.section import Bench, Section

LIMIT_SECONDS = 600.0
SESSION = """
import os
from bullpen.core.settings import Settings
from bullpen.reports.spark.session import open_session
with open_session(Settings.load(os.environ), small={small}):
    pass
"""
RECORD = """
import os
from bullpen.core.settings import Settings
from bullpen.reports.spark.session import open_session
with open_session(Settings.load(os.environ), record=lambda: None) as spark:
    rows = spark.range(1000).selectExpr("id", "id % 7 AS key")
    assert rows.groupBy("key").count().count() == 7
"""


@dataclass(frozen=True, slots=True)
class Start:
    """What one process needed, from its start to its end: seconds."""

    cpu: float
    wall: float


def reports_start(bench: Bench) -> Section:
    """A session that is opened and closed, in a process of its own."""
    with_archive, without = bench.directory / "archive", bench.directory / "no-archive"
    _run(RECORD, with_archive)
    turns: dict[str, Callable[[], Start]] = {}
    for mode, small in (("small", True), ("full", False)):
        code = SESSION.format(small=small)
        turns[f"{mode}, archive"] = partial(_run, code, with_archive)
        turns[f"{mode}, none"] = partial(_run, code, without)
    found = interleave(turns, bench.scale.starts, min(1, bench.scale.warm_up))
    cpu = {name: [each.cpu for each in starts] for name, starts in found.items()}
    measures = [
        *(Measure(f"start of Spark, {name}: CPU", Unit.SECONDS, cpu[name]) for name in found),
        *(
            Measure(f"start of Spark, {name}: wall", Unit.SECONDS, [each.wall for each in starts])
            for name, starts in found.items()
        ),
        *(
            Measure(
                f"start of Spark, {mode}: archive : none",
                Unit.RATIO,
                ratios(cpu[f"{mode}, archive"], cpu[f"{mode}, none"]),
            )
            for mode in ("small", "full")
        ),
        Measure(
            "start of Spark: small with archive : full without",
            Unit.RATIO,
            ratios(cpu["small, archive"], cpu["full, none"]),
        ),
    ]
    recorded = [*(with_archive / "spark").glob("classes-*")]
    return Section(measures, {"the class archive was written": bool(recorded)})


def _run(code: str, home: Path) -> Start:
    environ = {name: text for name, text in os.environ.items() if "BULLPEN_" not in name}
    home.mkdir(exist_ok=True)
    before, started = _children(), perf_counter()
    subprocess.run(
        [sys.executable, "-c", code],
        env={**environ, "BULLPEN_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        timeout=LIMIT_SECONDS,
        check=True,
    )
    return Start(_children() - before, perf_counter() - started)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
