"""The client of a channel as a process of its own, with a fake of its platform."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import psutil
from sqlalchemy import select

from bullpen.core.background import register_worker
from bullpen.core.channels.health import ChannelState, find_health
from bullpen.core.channels.senders import Tier, set_tier
from bullpen.core.company import add_agent
from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.manage import cancel
from bullpen.core.roster.agents import Agent
from bullpen.core.settings import Settings
from bullpen.core.settings.accounts import account_variable
from bullpen.core.states import MessageState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.wake.listener import Listener
from tests.bench.idle import used
from tests.bench.section import Bench
from tests.bench.wake import NEWER
from tests.channels.fakes.driven import RemoteFake

AGENT = "assistant"
READY_SECONDS = 60.0
LOOK_SECONDS = 0.01
ENTRY = "from bullpen.cli.main import main; main()"

UNFINISHED: Statement[tuple[str]] = Statement(
    lambda: select(MESSAGES.c.message_id).where(
        MESSAGES.c.status == const(MessageState.PENDING.value)
    )
)


@dataclass(slots=True)
class Client:
    """The client of a channel in a process of its own, and the fake that it serves."""

    store: Store
    listener: Listener
    fake: RemoteFake
    process: psutil.Process
    people: Sequence[tuple[str, str]]
    """Members, and their direct chats."""
    start_seconds: float
    """From the start of the process until it was connected."""
    last: int = 0
    number: int = 0

    @property
    def cpu(self) -> float:
        """The processor time that it has used, in seconds."""
        return used(self.process)

    @property
    def memory(self) -> float:
        """The memory of its own, in MiB."""
        return float(self.process.memory_full_info().uss / (1 << 20))

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

    def finish_all(self) -> None:
        """End every message, so that no progress is shown any more."""
        with self.store.write() as tx:
            for (message_id,) in tx.all(UNFINISHED, {}):
                cancel(tx, message_id)


@contextmanager
def serving(bench: Bench, kind: str, channel: str) -> Iterator[Client]:
    """A client that is connected to the fake of its platform."""
    settings = replace(bench.stores.settings(kind), default_agent=AGENT)
    with RemoteFake(channel, settings.home) as fake, bench.stores.opened(settings) as store:
        values = fake.settings()
        people = fake.people(bench.scale.burst)
        with store.write() as tx:
            add_agent(tx, Agent(id=AGENT))
            for person, _ in people:
                set_tier(tx, channel, person, Tier.MEMBER, by="owner", name="Ann")
        listener = store.listen()
        try:
            with store.write() as tx:
                register_worker(tx, "bench", listener.address)
            began = time.monotonic()
            with client_process(settings, channel, values) as process:
                while not _is_up(store, channel):
                    late = time.monotonic() - began > READY_SECONDS
                    if late or process.poll() is not None:
                        raise RuntimeError((settings.home / f"{channel}.log").read_text())
                    time.sleep(LOOK_SECONDS)
                seconds = time.monotonic() - began
                yield Client(store, listener, fake, psutil.Process(process.pid), people, seconds)
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
