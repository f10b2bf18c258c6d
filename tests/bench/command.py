"""command: how soon the command line answers, and how soon a new installation does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from bullpen.core.company import add_agent
from bullpen.core.roster.agents import Agent
from tests.bench.measure import Measure, Unit
from tests.bench.rounds import interleave, ratios
from tests.bench.section import Bench, Section
from tests.bench.stores import agent_names
from tests.cli.command import without_agents
from tests.ports import free_port

BULLPEN = str(Path(sys.executable).with_name("bullpen"))
LIST = (BULLPEN, "agent", "list")
IMPORT = (sys.executable, "-c", "import sqlalchemy, click")
AGENTS = 5
WARM_UP = 2
LIMIT_SECONDS = 120.0
TEXT = "hello"


def command(bench: Bench) -> Section:
    """`bullpen agent list` beside what it cannot do without; `bullpen up` to the first answer."""
    starts = [_start(bench.directory / f"start{number}") for number in range(bench.scale.starts)]
    total = [each.up + each.send for each in starts]
    first = "a new home, `up` to the first answer"
    parts = [("up", [each.up for each in starts]), ("send", [each.send for each in starts])]
    return Section(
        [
            *_list(bench),
            Measure(first, Unit.SECONDS, total, "echo"),
            *(Measure(f"{first}: {part}", Unit.SECONDS, found) for part, found in parts),
        ],
        {"a new home answered": all(TEXT in each.answer for each in starts)},
    )


def _list(bench: Bench) -> list[Measure]:
    settings = bench.stores.settings("sqlite")
    with bench.stores.opened(settings) as store, store.write() as tx:
        for name in agent_names(AGENTS):
            add_agent(tx, Agent(id=name))
    environ = environment(settings.home)
    turns: dict[str, Callable[[], float]] = {
        "list": lambda: timed(LIST, environ)[0] * 1e3,
        "import": lambda: timed(IMPORT, environ)[0] * 1e3,
    }
    found = interleave(turns, bench.scale.commands, min(WARM_UP, bench.scale.warm_up))
    name = "bullpen agent list"
    return [
        Measure(f"{name}: p50", Unit.MILLIS, found["list"]),
        Measure("import of sqlalchemy and click: p50", Unit.MILLIS, found["import"]),
        Measure(f"{name} : import", Unit.RATIO, ratios(found["list"], found["import"])),
    ]


@dataclass(frozen=True, slots=True)
class Start:
    """The first minute of a home: seconds, and what was answered."""

    up: float
    send: float
    answer: str


def _start(home: Path) -> Start:
    """As somebody does who has just installed it."""
    environ = environment(home)
    try:
        up, _ = timed((BULLPEN, "up"), environ)
        send, answer = timed((BULLPEN, "send", TEXT), environ)
    finally:
        timed((BULLPEN, "down"), environ)
    return Start(up, send, answer)


def timed(line: tuple[str, ...], environ: Mapping[str, str]) -> tuple[float, str]:
    """Seconds that it took, and what it printed."""
    started = perf_counter()
    done = subprocess.run(
        line,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    passed = perf_counter() - started
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(line)} ended with {done.returncode}: {done.stderr}")
    return passed, done.stdout


def environment(home: Path) -> dict[str, str]:
    """Nothing of the caller's Bullpen is in it, and no real agent is installed: echo answers."""
    inherited = {name: text for name, text in os.environ.items() if "BULLPEN_" not in name}
    return {
        **inherited,
        "PATH": without_agents(os.environ.get("PATH", os.defpath)),
        "BULLPEN_HOME": str(home),
        "BULLPEN_WORKSPACE": str(home / "workspace"),
        "BULLPEN_API_PORT": str(free_port()),
    }
