"""channels: from a platform's event to the stored message, from a commit to the platform's call."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

import psutil

from bullpen.core.background import register_worker
from bullpen.core.channels.health import ChannelState, find_health
from bullpen.core.channels.senders import Tier, set_tier
from bullpen.core.company import add_agent
from bullpen.core.message import Answer, ReplyTo
from bullpen.core.outbox.write import send_to_person
from bullpen.core.roster.agents import Agent
from bullpen.core.settings import Settings
from bullpen.core.settings.accounts import account_variable
from bullpen.core.store.base import Store
from bullpen.core.wake.listener import Listener
from tests.bench.idle import used
from tests.bench.measure import Measure, Unit, quantile
from tests.bench.section import Bench, Section
from tests.bench.wake import NEWER
from tests.channels.fakes.driven import RemoteFake

AGENT = "assistant"
PERSON = 1
GAP = 0.02
"""Between two paced messages."""
OUT_GAP = 0.05
OUT_GAPS = {"telegram": 0.3}
"""Longer pauses between responses, where a channel sends to a chat only so often."""
SETTLE_SECONDS = 1.5
READY_SECONDS = 30.0
ENTRY = "from bullpen.cli.main import main; main()"


@dataclass(slots=True)
class Client:
    """The client of a channel in a process of its own, and the fake that it serves."""

    store: Store
    listener: Listener
    fake: RemoteFake
    process: psutil.Process
    address: str
    out_gap: float
    last: int = 0
    number: int = 0

    def marks(self, count: int) -> list[str]:
        """So many texts that are found again in any request."""
        self.number += count
        return [f"q{each}q" for each in range(self.number - count, self.number)]

    def stored(self, count: int) -> dict[str, float]:
        """Wait for so many messages; returns when each was seen in the store."""
        seen: dict[str, float] = {}
        end = time.monotonic() + READY_SECONDS
        while len(seen) < count:
            if time.monotonic() > end:
                raise RuntimeError(f"{self.fake.channel}: {len(seen)} of {count} were stored")
            self.listener.wait(0.5)
            with self.store.read() as tx:
                rows = tx.all(NEWER, {"last": self.last})
            now = time.time()
            seen |= {text: now for _, text in rows}
            self.last = rows[-1][0] if rows else self.last
        return seen


def channels(bench: Bench) -> Section:
    """Each channel on SQLite, through its SDK, with the fake of its platform."""
    measures: list[Measure] = []
    checks: dict[str, bool] = {}
    for channel in bench.scale.channels:
        found, ordered = _served(bench, channel)
        measures += found
        checks[f"{channel}: every message once and in order"] = ordered
    return Section(measures, checks)


def _served(bench: Bench, channel: str) -> tuple[list[Measure], bool]:
    scale = bench.scale
    with serving(bench, channel) as client:
        _received(client, scale.warm_up, GAP)
        paced = [each for each, _ in _received(client, scale.paced, GAP)]
        bursts: list[list[float]] = []
        ordered = True
        for _ in range(scale.bursts):
            found = _received(client, scale.burst, 0)
            bursts.append([each for each, _ in found])
            ordered = ordered and [mark for _, mark in found] == sorted(
                (mark for _, mark in found), key=lambda mark: int(mark.strip("q"))
            )
            time.sleep(SETTLE_SECONDS * bool(scale.warm_up))
        out = _sent(client, scale.paced)
        time.sleep(SETTLE_SECONDS * bool(scale.warm_up))
        cpu = _idle(client.process, scale.idle_seconds)
        memory = client.process.memory_full_info().uss / (1 << 20)
    tails = [quantile(each, 0.99) for each in bursts]
    middles = [quantile(each, 0.5) for each in bursts]
    note = f"p50 {sorted(middles)[len(middles) // 2]:.0f} ms, {scale.burst} at once"
    return [
        Measure(
            f"{channel}: event to stored, p50",
            Unit.MILLIS,
            [quantile(paced, 0.5)],
            f"p99 {quantile(paced, 0.99):.1f} ms, {len(paced)} paced messages",
        ),
        Measure(f"{channel}: event to stored in a burst, p99", Unit.MILLIS, tails, note),
        Measure(
            f"{channel}: commit to call, p50",
            Unit.MILLIS,
            [quantile(out, 0.5)],
            f"p99 {quantile(out, 0.99):.1f} ms, {len(out)} responses",
        ),
        Measure(f"{channel}: idle CPU", Unit.PERCENT, [cpu], f"in {scale.idle_seconds:g} s"),
        Measure(f"{channel}: memory", Unit.MIB, [memory], "of its own"),
    ], ordered


def _received(client: Client, count: int, gap: float) -> list[tuple[float, str]]:
    """Milliseconds from the event of each message to its row, and its text, in stored order."""
    if not count:
        return []
    marks = client.marks(count)
    with ThreadPoolExecutor(1) as thread:
        saying = thread.submit(client.fake.say, PERSON, marks, gap)
        seen = client.stored(count)
        written = dict(zip(marks, saying.result(), strict=True)) | client.fake.pushed()
    return [(1000 * (at - written[mark]), mark) for mark, at in seen.items()]


def _sent(client: Client, count: int) -> list[float]:
    """Milliseconds from the commit of each response to the request that sends it."""
    marks = client.marks(count)
    committed = {}
    for mark in marks:
        time.sleep(client.out_gap)
        with client.store.write() as tx:
            send_to_person(
                tx,
                Answer(message=mark),
                channel=client.fake.channel,
                sender="Ann",
                sender_id=client.fake.person(PERSON),
                agent=AGENT,
                reply_to=client.address,
            )
        committed[mark] = time.time()
    end = time.monotonic() + READY_SECONDS
    while not (asked := client.fake.asked()).keys() >= committed.keys():
        if time.monotonic() > end:
            raise RuntimeError(f"{client.fake.channel}: only {len(asked)} responses were sent")
        time.sleep(0.1)
    return [1000 * (asked[mark] - at) for mark, at in committed.items()]


def _idle(process: psutil.Process, seconds: float) -> float:
    before, began = used(process), time.monotonic()
    time.sleep(seconds)
    return 100 * (used(process) - before) / (time.monotonic() - began)


@contextmanager
def serving(bench: Bench, channel: str) -> Iterator[Client]:
    """A client that is connected to the fake of its platform."""
    settings = replace(bench.stores.settings("sqlite"), default_agent=AGENT)
    with RemoteFake(channel, settings.home) as fake, bench.stores.opened(settings) as store:
        with store.write() as tx:
            add_agent(tx, Agent(id=AGENT))
            set_tier(tx, channel, fake.person(PERSON), Tier.MEMBER, by="owner", name="Ann")
        listener = store.listen()
        try:
            with store.write() as tx:
                register_worker(tx, "bench", listener.address)
            with client_process(settings, channel, fake.settings()) as process:
                end = time.monotonic() + READY_SECONDS
                while not _is_up(store, channel):
                    if process.poll() is not None or time.monotonic() > end:
                        raise RuntimeError((settings.home / f"{channel}.log").read_text())
                    time.sleep(0.05)
                yield Client(
                    store,
                    listener,
                    fake,
                    psutil.Process(process.pid),
                    str(ReplyTo(fake.direct(PERSON))),
                    OUT_GAPS.get(channel, OUT_GAP) * bool(bench.scale.warm_up),
                )
        finally:
            listener.close()


@contextmanager
def client_process(
    settings: Settings, channel: str, values: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """`bullpen run channel NAME` with these settings of its account."""
    environ = {name: value for name, value in os.environ.items() if "BULLPEN_" not in name}
    environ |= {
        "BULLPEN_HOME": str(settings.home),
        "BULLPEN_WORKSPACE": str(settings.workspace),
        "BULLPEN_DATABASE_URL": settings.database_url,
        "BULLPEN_DEFAULT_AGENT": settings.default_agent,
        **{account_variable(f"{channel}.{name}"): value for name, value in values.items()},
    }
    command = (sys.executable, "-c", ENTRY, "run", "channel", channel)
    with (settings.home / f"{channel}.log").open("ab") as log:
        process = subprocess.Popen(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(READY_SECONDS)


def _is_up(store: Store, channel: str) -> bool:
    with store.read() as tx:
        health = find_health(tx, channel)
    return health is not None and health.state == ChannelState.UP
