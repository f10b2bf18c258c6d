"""reports_pages: how soon `bullpen report show` answers, and how soon a page of the dashboard."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bullpen.core.clock import SystemClock
from bullpen.core.settings import Settings
from bullpen.ops.demo.plan import HistoryPlan
from bullpen.ops.demo.write import write_history
from bullpen.reports.report import list_reports
from tests.api.served import Served, serving, start_api
from tests.bench.command import environment, timed
from tests.bench.measure import Measure, Unit, quantile
from tests.bench.rounds import interleave
from tests.bench.section import Bench, Section

BULLPEN = str(Path(sys.executable).with_name("bullpen"))
DAYS = 30
SEED = 1
WARM_UP = 2


def reports_pages(bench: Bench) -> Section:
    """Each report in a process and each page of a server, over a month that ends now."""
    settings = bench.stores.settings("sqlite")
    now, attempts = SystemClock().now(), bench.scale.read_attempts
    plan = HistoryPlan.from_settings(settings, seed=SEED, attempts=attempts, days=DAYS, until=now)
    write_history(settings, plan, lambda _: None)
    timed((BULLPEN, "report", "run"), environment(settings.home))
    names = [each.name for each in list_reports()]
    rounds, warm_up = bench.scale.commands, min(WARM_UP, bench.scale.warm_up)
    shown = interleave({each: partial(_show, settings, each) for each in names}, rounds, warm_up)
    with serving(settings, start_api) as served:
        turns: dict[str, Callable[[], float]] = {"overview": partial(_get, served, "/reports")}
        turns |= {each: partial(_get, served, f"/reports/{each}") for each in names}
        pages = interleave(turns, rounds, warm_up)
    note = f"{attempts} attempts"
    return Section(
        [
            *(
                Measure(f"bullpen report show {name}: p50", Unit.MILLIS, laps, note)
                for name, laps in shown.items()
            ),
            *(
                Measure(
                    f"page {name}: p95",
                    Unit.MILLIS,
                    [quantile(laps, 0.95)],
                    f"p50 {quantile(laps, 0.5):.0f} ms",
                    {"p50": quantile(laps, 0.5), "longest": max(laps)},
                )
                for name, laps in pages.items()
            ),
        ]
    )


def _show(settings: Settings, name: str) -> float:
    seconds, _ = timed((BULLPEN, "report", "show", name), environment(settings.home))
    return seconds * 1e3


def _get(served: Served, path: str) -> float:
    """The milliseconds from the request to the head of the answer, which follows its last row."""
    response = served.ask("GET", path)
    if response.status_code != 200 or 'class="empty"' in response.text:
        raise RuntimeError(f"{path} has no numbers: {response.status_code}")
    return response.elapsed.total_seconds() * 1e3
