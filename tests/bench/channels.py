"""channels: from a platform's event to the stored message, from a commit to the platform's call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from bullpen.core.message import Answer, ReplyTo
from bullpen.core.outbox.write import send_to_person
from tests.bench.channel_client import AGENT, READY_SECONDS, Client, serving
from tests.bench.measure import Measure, Unit, quantile
from tests.bench.section import Bench, Section
from tests.bench.stores import KINDS

PERSON = 1
GAP = 0.02
"""Between two paced messages."""
OUT_GAP = 0.05
OUT_CHATS = 20
"""The chats that get the paced responses in turn: a channel may send to each only so often."""
SETTLE_SECONDS = 0.5
PENDING = 100
"""The messages that wait while the processor time of the progress is measured."""


def channels(bench: Bench) -> Section:
    """Each channel on each store, through its SDK, with the fake of its platform."""
    measures: list[Measure] = []
    checks: dict[str, bool] = {}
    for kind in KINDS:
        with ExitStack() as stack:
            served = {
                channel: _Served(stack.enter_context(serving(bench, kind, channel)), bench)
                for channel in bench.scale.channels
            }
            for each in served.values():
                each.measure()
            _measure_idle(bench, [*served.values()])
            for channel, each in served.items():
                measures += each.measures(f"{channel}, {kind}")
                checks[f"{channel}, {kind}: every message once and in order"] = each.in_order
    return Section(measures, checks)


class _Served:
    """What is measured of one client."""

    def __init__(self, client: Client, bench: Bench) -> None:
        self.client = client
        self._scale = bench.scale
        self._settle = SETTLE_SECONDS * bool(bench.scale.warm_up)
        self.in_order = True
        self.busy = self.idle = 0.0
        self._memory = client.memory
        self._memory_after = 0.0
        self._paced: list[float] = []
        self._bursts: list[list[float]] = []
        self._crowds: list[list[float]] = []
        self._out: list[float] = []

    def measure(self) -> None:
        """Messages in, one after the other and at once, and responses out."""
        scale, client = self._scale, self.client
        _received(client, scale.warm_up, GAP)
        self._memory = client.memory
        self._paced = [each for each, _ in _received(client, scale.paced, GAP)]
        for _ in range(scale.bursts):
            found = _received(client, scale.burst, 0)
            self._bursts.append([each for each, _ in found])
            marks = [int(mark.strip("q")) for _, mark in found]
            self.in_order = self.in_order and marks == sorted(marks)
            time.sleep(self._settle)
            self._crowds.append([each for each, _ in _received_from_all(client, scale.burst)])
            time.sleep(self._settle)
        self._out = _sent(client, scale.paced, OUT_GAP * bool(scale.warm_up))
        self._memory_after = client.memory

    def measures(self, name: str) -> list[Measure]:
        """What was found."""
        scale, seconds = self._scale, self._scale.client_seconds
        return [
            Measure(
                f"{name}: event to stored, p50",
                Unit.MILLIS,
                [quantile(self._paced, 0.5)],
                f"p99 {quantile(self._paced, 0.99):.1f} ms, {len(self._paced)} paced messages",
            ),
            _tail(f"{name}: event to stored in a burst, p99", self._bursts, "one chat"),
            _tail(f"{name}: event to stored in many chats, p99", self._crowds, "one each"),
            Measure(
                f"{name}: commit to call, p50",
                Unit.MILLIS,
                [quantile(self._out, 0.5)],
                f"p99 {quantile(self._out, 0.99):.1f} ms, {len(self._out)} responses",
            ),
            Measure(f"{name}: idle CPU", Unit.PERCENT, [self.idle], f"in {seconds:g} s"),
            Measure(
                f"{name}: CPU while messages wait",
                Unit.PERCENT,
                [self.busy],
                f"{min(PENDING, scale.burst)} in as many chats",
            ),
            Measure(
                f"{name}: memory",
                Unit.MIB,
                [self._memory_after],
                f"of its own; {self._memory:.0f} MiB before the bursts",
            ),
            Measure(f"{name}: connected within", Unit.SECONDS, [self.client.start_seconds]),
        ]


def _tail(what: str, rounds: Sequence[Sequence[float]], note: str) -> Measure:
    middles = sorted(quantile(each, 0.5) for each in rounds)
    note = f"p50 {middles[len(middles) // 2]:.0f} ms, {len(rounds[0])} at once, {note}"
    return Measure(what, Unit.MILLIS, [quantile(each, 0.99) for each in rounds], note)


def _measure_idle(bench: Bench, served: Sequence[_Served]) -> None:
    """The processor time of all clients, with nothing to do and while messages wait."""
    scale = bench.scale
    for each in served:
        each.client.finish_all()
    time.sleep(scale.idle_warm_up)
    for each, percent in zip(served, _cpu(served, scale.client_seconds), strict=True):
        each.idle = percent
    for each in served:
        _received_from_all(each.client, min(PENDING, scale.burst))
    time.sleep(scale.idle_warm_up)
    for each, percent in zip(served, _cpu(served, scale.client_seconds), strict=True):
        each.busy = percent


def _cpu(served: Sequence[_Served], seconds: float) -> list[float]:
    """The part of a CPU that each client uses in this time, in percent."""
    before, began = [each.client.cpu for each in served], time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    return [100 * (each.client.cpu - at) / passed for each, at in zip(served, before, strict=True)]


def _received(client: Client, count: int, gap: float) -> list[tuple[float, str]]:
    """Milliseconds from the event of each message to its row, and its text, in stored order."""
    return _stored(client, count, lambda marks: client.fake.say(PERSON, marks, gap))


def _received_from_all(client: Client, count: int) -> list[tuple[float, str]]:
    """The same for messages of as many people at once."""
    return _stored(client, count, client.fake.say_all)


def _stored(
    client: Client, count: int, say: Callable[[Sequence[str]], list[float]]
) -> list[tuple[float, str]]:
    if not count:
        return []
    marks = client.marks(count)
    with ThreadPoolExecutor(1) as thread:
        saying = thread.submit(say, marks)
        seen = client.stored(count)
        written = dict(zip(marks, saying.result(), strict=True)) | client.fake.pushed()
    return [(1000 * (at - written[mark]), mark) for mark, at in seen.items()]


def _sent(client: Client, count: int, gap: float) -> list[float]:
    """Milliseconds from the commit of each response to the request that sends it."""
    committed = {}
    for number, mark in enumerate(client.marks(count)):
        person, chat = client.people[number % min(OUT_CHATS, len(client.people))]
        time.sleep(gap)
        with client.store.write() as tx:
            send_to_person(
                tx,
                Answer(message=mark),
                channel=client.fake.channel,
                sender="Ann",
                sender_id=person,
                agent=AGENT,
                reply_to=str(ReplyTo(chat)),
            )
        committed[mark] = time.time()
    end = time.monotonic() + READY_SECONDS
    while not (asked := client.fake.asked()).keys() >= committed.keys():
        if time.monotonic() > end:
            raise RuntimeError(f"{client.fake.channel}: only {len(asked)} responses were sent")
        time.sleep(0.1)
    return [1000 * (asked[mark] - at) for mark, at in committed.items()]
