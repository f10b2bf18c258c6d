"""post: messages over HTTP, beside core's own enqueue and beside a bare Flask route."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from bullpen.core.company import add_agent
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.roster.agents import Agent
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from tests.api.served import serving, start_api
from tests.bench.laps import message
from tests.bench.measure import Measure, Unit, quantile
from tests.bench.peers import PAYLOAD
from tests.bench.rounds import interleave, ratios
from tests.bench.section import Bench, Section
from tests.ports import free_port

CLIENTS = (1, 8)
START_SECONDS = 0.5
READY_SECONDS = 60.0
HOST = "127.0.0.1"
OURS, CORE, BARE = "POST /api/message", "core's enqueue", "bare Flask route"


@dataclass(frozen=True, slots=True)
class Target:
    """Where to post, and as whom."""

    port: int
    token: str = ""

    def request(self) -> bytes:
        """One request, to the letter: the client costs next to nothing."""
        body = json.dumps({"message": PAYLOAD}).encode()
        head = (
            "POST /api/message HTTP/1.1",
            f"Host: {HOST}:{self.port}",
            f"Authorization: Bearer {self.token}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        )
        return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def post(bench: Bench) -> Section:
    """Throughput and latency of one client and of eight, each a process, all durable."""
    settings = bench.stores.settings("sqlite")
    with bench.stores.opened(settings) as store, store.write() as tx:
        add_agent(tx, Agent(id=settings.default_agent))
    beside = bench.stores.copy(settings)
    scale = bench.scale
    context = multiprocessing.get_context("forkserver")
    with ExitStack() as stack:
        served = stack.enter_context(serving(settings, start_api))
        bare = stack.enter_context(_bare(settings.home))
        pool = stack.enter_context(ProcessPoolExecutor(max(CLIENTS), mp_context=context))
        list(pool.map(time.sleep, [1.0] * max(CLIENTS)))  # all are there from now on
        work: dict[str, tuple[Callable[..., list[float]], object]] = {
            OURS: (posting, Target(int(served.url.rpartition(":")[2]), served.token)),
            CORE: (enqueuing, beside),
            BARE: (posting, bare),
        }
        turns = {
            f"{name}, {count}": Turn(pool, function, what, count, scale.process_seconds)
            for count in CLIENTS
            for name, (function, what) in work.items()
        }
        results = interleave(turns, scale.process_rounds, warm_up=1)
    return Section(_measures(results))


def posting(target: Target, start_at: float, seconds: float) -> list[float]:
    """Post over one connection, one after the other; how long each took."""
    request = target.request()
    laps: list[float] = []
    with socket.create_connection((HOST, target.port)) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        time.sleep(max(0.0, start_at - time.monotonic()))
        while not laps or time.monotonic() < start_at + seconds:  # however late it comes
            began = perf_counter()
            peer.sendall(request)
            text = b""
            while b"}" not in text:
                chunk = peer.recv(65536)
                if not chunk:
                    raise RuntimeError(f"the server hung up: {text!r}")
                text += chunk
            laps.append(perf_counter() - began)
            if not text.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(text.decode())
    return laps


def enqueuing(settings: Settings, start_at: float, seconds: float) -> list[float]:
    """Enqueue by core's own verb, one after the other; how long each took."""
    store = open_store(settings)
    with store.read() as tx:
        tx.fetch("SELECT count(*) FROM lanes")
    laps: list[float] = []
    time.sleep(max(0.0, start_at - time.monotonic()))
    while not laps or time.monotonic() < start_at + seconds:
        began = perf_counter()
        with store.write() as tx:
            enqueue(tx, message(settings.default_agent))
        laps.append(perf_counter() - began)
    store.close()
    return laps


class Turn:
    """One turn of so many processes at once."""

    def __init__(
        self,
        pool: ProcessPoolExecutor,
        function: Callable[..., list[float]],
        what: object,
        count: int,
        seconds: float,
    ) -> None:
        self._pool = pool
        self._work = function, what
        self._count = count
        self._seconds = seconds

    def __call__(self) -> list[float]:
        start_at = time.monotonic() + START_SECONDS
        function, what = self._work
        futures = [
            self._pool.submit(function, what, start_at, self._seconds) for _ in range(self._count)
        ]
        # A message that was under way at the end took its time, too: the rate is of the laps.
        return [lap for each in futures for lap in each.result()]


def _measures(results: dict[str, list[list[float]]]) -> list[Measure]:
    measures = []
    rates = {}
    for title, rounds in results.items():
        clients = int(title.rpartition(" ")[2])
        rates[title] = [clients * len(laps) / sum(laps) for laps in rounds]
        tails = [quantile(laps, 0.99) * 1000 for laps in rounds]
        middle = quantile([lap for laps in rounds for lap in laps], 0.5) * 1000
        measures.append(
            Measure(f"{_who(title)}: messages", Unit.RATE, rates[title], f"p50 {middle:.2f} ms")
        )
        measures.append(Measure(f"{_who(title)}: p99", Unit.MILLIS, tails))
    for clients in CLIENTS:
        ours = rates[f"{OURS}, {clients}"]
        for other in (CORE, BARE):
            ratio = ratios(ours, rates[f"{other}, {clients}"])
            measures.append(
                Measure(f"{OURS} : {other}, {clients} and {clients}", Unit.RATIO, ratio)
            )
    return measures


def _who(title: str) -> str:
    name, _, count = title.rpartition(", ")
    return f"{name}, {count} process{'es' if count != '1' else ''}"


@contextmanager
def _bare(home: Path) -> Iterator[Target]:
    port = free_port()
    program = (sys.executable, "-m", "gunicorn", "tests.bench.bare:create()")
    options = ("-k", "gthread", "--threads", "64", "-b", f"{HOST}:{port}")
    environ = {
        **os.environ,
        "BARE_DATABASE": str(home / "bare.db"),
        "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
    }
    with (home / "bare.log").open("wb") as log:
        process = subprocess.Popen(
            (*program, *options, "--no-control-socket"), env=environ, stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                socket.create_connection((HOST, port)).close()
                break
            except ConnectionRefusedError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((home / "bare.log").read_text()) from None
                time.sleep(0.05)
        yield Target(port)
    finally:
        process.terminate()
        process.wait(READY_SECONDS)
