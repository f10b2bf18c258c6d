"""Soak: messages in and out on one channel, while everything around them is killed and cut.

The client, the processor and the fake of the platform are processes. Between small groups of
messages one of them is killed by SIGKILL and started again, or connections are cut. Afterwards
each message must have been stored once and answered once, in the order of its chat.

Where a platform cannot tell whether it took a part, the response is `unknown` at the end. It is
then retried, as a person would: its text says that it may be a duplicate. Only such a labelled
answer may be seen after another one.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from bullpen.channels.outgoing.parts import DUPLICATE_LABEL
from bullpen.core.channels.senders import Tier, set_tier
from bullpen.core.models import CHANNEL_HEALTH, MESSAGES, RESPONSES
from bullpen.core.outbox.manage import retry_response
from bullpen.core.queue.lanes import Batching, LanePolicy
from bullpen.core.settings import Settings
from bullpen.core.settings.accounts import account_variable
from bullpen.core.store.base import Store
from tests.channels.fakes.driven import TOKEN, RemoteFake
from tests.conformance.verbs import Row, hire, rows
from tests.processor.working import eventually
from tests.stores import Stores

ROOT = Path(__file__).resolve().parents[2]
AGENT = "coder"
PEOPLE = 6
MOST_AT_ONCE = 8
"""Messages between two faults."""
FAULT_RATE = 0.15
"""The chance of a fault after each group of messages: about one for 30 messages."""
PACE_SECONDS = 0.05
GONE_SECONDS = 0.3
SETTLE_SECONDS = 120.0
CLIENT = ("-m", "tests.channels.conformance.child")
SERVICE = ("-c", "from bullpen.cli.main import main; main()", "run")
LABEL = DUPLICATE_LABEL.strip("*()")
FAULTS = ("client", "processor", "fake", "cut")


@dataclass(slots=True)
class Outcome:
    """What became of the messages of a soak."""

    said: dict[int, list[str]]
    """The marks that each person wrote, in order."""
    stored: dict[int, list[str]]
    """The marks of the stored messages of each person, in order."""
    seen: dict[int, list[str]]
    """The marks of the bot's answers in the chat of each person, in order."""
    labelled: dict[int, list[str]]
    """The same for the answers that say that they may be duplicates."""
    unknown: list[str]
    """The marks of responses whose outcome was unknown, before they were retried."""
    unfinished: list[Row]
    """Responses that were not delivered at the end."""
    faults: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def messages(self) -> int:
        """How many messages people wrote."""
        return sum(map(len, self.said.values()))

    @property
    def lost(self) -> list[str]:
        """The marks of messages that were not stored, or whose answers nobody saw."""
        return [
            each
            for number, said in self.said.items()
            for each in said
            if each not in self.stored[number]
            or each not in (*self.seen[number], *self.labelled[number])
        ]

    @property
    def repeated(self) -> list[str]:
        """The marks of messages that were stored again, and of answers repeated without a label."""
        return [
            mark
            for found in (self.stored, self.seen)
            for marks in found.values()
            for mark in (Counter(marks) - Counter(set(marks))).elements()
        ]

    @property
    def repeated_with_label(self) -> list[str]:
        """The marks of answers that were seen again with a label."""
        return [
            mark
            for number, labelled in self.labelled.items()
            for mark in (
                Counter(labelled) - Counter(set(labelled) - set(self.seen[number]))
            ).elements()
        ]

    def swapped(self, *, in_order: bool) -> list[str]:
        """Where the order of a chat was not kept.

        `in_order`: the platform tells in which order people wrote.
        """
        found = []
        for number, said in self.said.items():
            stored, seen = list(dict.fromkeys(self.stored[number])), self.seen[number]
            if in_order and stored != (expected := [each for each in said if each in stored]):
                found.append(f"person {number}: stored {_first_difference(expected, stored)}")
            seen = list(dict.fromkeys(seen))
            if seen != (expected := [each for each in stored if each in seen]):
                found.append(f"person {number}: saw {_first_difference(expected, seen)}")
        return found

    def problems(self, *, can_tell: bool, in_order: bool) -> list[str]:
        """What was not kept; empty if everything was. `can_tell`: the platform has look-ups."""
        found = [f"unfinished: {each}" for each in self.unfinished[:3]]
        labels = Counter(each for marks in self.labelled.values() for each in marks)
        if can_tell and self.unknown:
            found.append(f"unknown: {self.unknown}")
        if wrong := labels - Counter(self.unknown):
            found.append(f"labelled, and not unknown before: {list(wrong)}")
        if self.lost:
            found.append(f"lost: {self.lost}")
        if self.repeated:
            found.append(f"repeated without a label: {self.repeated}")
        return found + self.swapped(in_order=in_order)

    def line(self, channel: str, *, in_order: bool) -> str:
        """A line for people."""
        cuts = self.faults["cut"]
        order = "kept" if not self.swapped(in_order=in_order) else "NOT kept"
        return (
            f"{channel}: {self.messages} messages, {self.faults.total() - cuts} kills"
            f" ({', '.join(f'{self.faults[each]} {each}' for each in FAULTS if each != 'cut')}),"
            f" {cuts} cut connections; {len(self.lost)} lost,"
            f" {len(self.repeated_with_label)} labelled and {len(self.repeated)} unlabelled"
            f" duplicates, order {order}, {len(self.unknown)} unknown; {self.seconds:.0f} s"
        )


def _first_difference(expected: Sequence[str], found: Sequence[str]) -> str:
    pairs = enumerate(zip(expected, found, strict=False))
    at = next((n for n, pair in pairs if len(set(pair)) > 1), 0)
    return f"{list(found[at : at + 5])} instead of {list(expected[at : at + 5])}"


class Part:
    """A process of Bullpen that is killed and started again."""

    def __init__(self, command: Sequence[str], environ: dict[str, str], log: Path) -> None:
        self._command = (sys.executable, *command)
        self._environ = environ
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """End it by SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def again(self) -> None:
        """Kill it, and start it again."""
        self.kill()
        self.start()


def soak(
    stores: Stores,
    channel: str,
    count: int,
    *,
    faults: Sequence[str] = (),
    chance: random.Random | None = None,
) -> Outcome:
    """Send so many messages through a channel; without `faults`, a random one after each group."""
    chance = chance or random.Random()
    settings = replace(stores.settings("sqlite"), default_agent=AGENT)
    began = time.monotonic()
    with served(stores, settings, channel) as (store, fake, parts):
        numbers = {fake.person(number): number for number in range(1, PEOPLE + 1)}
        said: dict[int, list[str]] = {number: [] for number in numbers.values()}
        # Some platforms cannot list the chats that were opened while nobody listened.
        eventually(lambda: _is_up(store), "the client is connected")
        for number in said:
            fake.say(number, ["hello"])
        eventually(lambda: len(rows(store, MESSAGES)) == PEOPLE, "everybody is known")
        happened: Counter[str] = Counter()
        planned = list(faults)
        gap = max(1, count // (len(planned) + 1))
        written = 0
        while written < count:
            size = gap if planned or faults else chance.randint(1, MOST_AT_ONCE)
            size = min(size, count - written)
            number = chance.randint(1, PEOPLE)
            marks = [f"q{each}q" for each in range(written, written + size)]
            fake.say(number, marks)
            said[number] += marks
            written += size
            if faults:
                name = planned.pop(0) if planned else ""
            else:
                name = chance.choice(FAULTS) if chance.random() < FAULT_RATE else ""
                time.sleep(size * PACE_SECONDS)
            if name:
                time.sleep(chance.uniform(0, 0.3))
                happened[name] += 1
                _break(name, fake, parts)
        return _outcome(store, fake, numbers, said, happened, began)


def _break(name: str, fake: RemoteFake, parts: dict[str, Part]) -> None:
    if name == "fake":
        fake.process.kill()
        time.sleep(GONE_SECONDS)
        fake.process.start()
    elif name == "cut":
        fake.process.call("vanish", seconds=GONE_SECONDS)
        time.sleep(GONE_SECONDS)
    else:
        parts[name].again()


def _outcome(
    store: Store,
    fake: RemoteFake,
    numbers: dict[str, int],
    said: dict[int, list[str]],
    happened: Counter[str],
    began: float,
) -> Outcome:
    """Wait until nothing moves any more, retry what is unknown, and look."""
    count = sum(map(len, said.values()))

    def answered() -> bool:
        found = rows(store, RESPONSES)
        return len(found) >= count + PEOPLE and all(map(_has_ended, found))

    def are_acked() -> bool:
        return all(each["status"] == "acked" for each in rows(store, RESPONSES))

    with suppress(AssertionError):  # the outcome says what is missing
        eventually(answered, "every message is answered", SETTLE_SECONDS)
    unknown = [each for each in rows(store, RESPONSES) if each["status"] == "unknown"]
    with store.write() as tx:
        for each in unknown:
            retry_response(tx, each["id"])
    with suppress(AssertionError):
        eventually(are_acked, "every response is acked", SETTLE_SECONDS)
    stored: dict[int, list[str]] = {number: [] for number in said}
    for each in rows(store, MESSAGES):
        if each["channel"] == fake.channel:
            stored[numbers[each["sender_id"]]] += _marks(each["message"])
    posts = {number: fake.posts(number) for number in said}
    return Outcome(
        said=said,
        stored=stored,
        seen={number: _marks_of(each, labelled=False) for number, each in posts.items()},
        labelled={number: _marks_of(each, labelled=True) for number, each in posts.items()},
        unknown=[mark for each in unknown for mark in _marks(each["message"])],
        unfinished=[each for each in rows(store, RESPONSES) if each["status"] != "acked"],
        faults=happened,
        seconds=time.monotonic() - began,
    )


def _marks_of(posts: Sequence[str], *, labelled: bool) -> list[str]:
    found = [each for each in posts if (LABEL in each) is labelled]
    return _marks(" ".join(found))


def _is_up(store: Store) -> bool:
    found = rows(store, CHANNEL_HEALTH)
    return bool(found) and found[0]["state"] == "up"


def _has_ended(response: Row) -> bool:
    status = response["status"]
    return status == "acked" or (status == "unknown" and response["recover_at"] is None)


def _marks(text: str) -> list[str]:
    return [each.decode() for each in TOKEN.findall(text.encode())]


@contextmanager
def served(
    stores: Stores, settings: Settings, channel: str
) -> Iterator[tuple[Store, RemoteFake, dict[str, Part]]]:
    """A database, the fake of a platform, and the processes of Bullpen."""
    with RemoteFake(channel, settings.home) as fake, stores.opened(settings) as store:
        hire(store, AGENT, LanePolicy(batching=Batching.ONE))
        with store.write() as tx:
            for number in range(1, PEOPLE + 1):
                set_tier(tx, channel, fake.person(number), Tier.MEMBER, by="owner", name="Ann")
        kept = {name: value for name, value in os.environ.items() if "BULLPEN_" not in name}
        environ = {
            **kept,
            "BULLPEN_HOME": str(settings.home),
            "BULLPEN_WORKSPACE": str(settings.workspace),
            "BULLPEN_DEFAULT_AGENT": AGENT,
            "BULLPEN_LEASE_SECONDS": "5",
            "BULLPEN_DELIVERY_LEASE_SECONDS": "15",
            "BULLPEN_RETRY_BASE_SECONDS": "1",
            "BULLPEN_RETRY_MAX_SECONDS": "2",
            **{
                account_variable(f"{channel}.{name}"): value
                for name, value in fake.settings().items()
            },
        }
        commands = {
            "client": (*CLIENT, channel, "never", "0"),
            "processor": (*SERVICE, "processor"),
            "scheduler": (*SERVICE, "scheduler"),  # it ends the leases of killed processors
        }
        parts = {
            name: Part(command, environ, settings.home / f"{name}.log")
            for name, command in commands.items()
        }
        with ExitStack() as stack:
            for each in parts.values():
                stack.callback(each.kill)
                each.start()
            yield store, fake, parts
