"""A platform without the base client: its context, a clock to move, and an intake that records."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from bullpen.channels.files.attachments import Prepared
from bullpen.channels.inbound import Attachment, Inbound, Payload, Written
from bullpen.channels.platform import ChannelContext
from bullpen.core.clock import SystemClock
from bullpen.core.registry import CHANNELS, ChannelInfo

WAIT_SECONDS = 20.0
CONNECTED = "connected"

Kind = TypeVar("Kind")
Result = TypeVar("Result")


class ShiftedClock(SystemClock):
    """The clock of the machine, which a test sets forward."""

    ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead


def make_context(
    channel: str,
    given: Mapping[str, str],
    *,
    directory: Path | None = None,
    clock: SystemClock | None = None,
    store_id: str = "abcd",
) -> ChannelContext:
    """What a platform is made with; settings that are not given have their defaults."""
    info = CHANNELS.find(channel)
    assert isinstance(info, ChannelInfo)
    values = {each.name: each.default for each in info.all_settings} | dict(given)
    return ChannelContext(
        info=info,
        setting=values.__getitem__,
        store_id=store_id,
        directory=directory or Path(),
        clock=clock or SystemClock(),
        chance=lambda: 0.0,
        log=logging.getLogger(f"bullpen.channel.{channel}"),
    )


class RecordingIntake:
    """Keeps what a platform adds, stored at once unless a test lets it wait or fail."""

    def __init__(self, parse: Callable[[Payload], Inbound | None]) -> None:
        self._parse = parse
        self._error: Exception | None = None
        self._failures: int | None = None
        self.payloads: list[Payload] = []
        """What was added, and did not fail."""
        self.inbound: list[Inbound] = []
        """What the payloads say, without those of no interest."""
        self.unreadable: list[str] = []
        """The errors of payloads that cannot be parsed."""
        self.refused = 0
        """How many failed."""
        self.holds = False
        """Whether payloads wait in `held`, as before a commit."""
        self.held: list[asyncio.Future[None]] = []
        self.calls: list[str] = []
        """Each `connected`, and the reason of each `disconnected`."""
        self.open_connections = 0
        """As the platform last said."""
        self.heards = 0

    @property
    def connections(self) -> int:
        """How often it was connected."""
        return self.calls.count(CONNECTED)

    @property
    def lost(self) -> list[str]:
        """Why it was disconnected."""
        return [each for each in self.calls if each != CONNECTED]

    @property
    def texts(self) -> list[str]:
        """The texts that people wrote."""
        return [each.text for each in self.of(Written)]

    def of(self, kind: type[Kind]) -> list[Kind]:
        """What came of one kind."""
        return [each for each in self.inbound if isinstance(each, kind)]

    def fail(self, error: Exception | None = None, times: int | None = None) -> None:
        """Let the next payloads fail; without `times`, until `heal`."""
        self._error = error or OSError("the store cannot be written")
        self._failures = times

    def heal(self) -> None:
        """Store payloads again."""
        self._error = None

    def release(self) -> None:
        """Store what was held."""
        self.holds = False
        for each in self.held:
            if not each.done():
                each.set_result(None)
        self.held.clear()

    def add(self, payload: Payload) -> asyncio.Future[None]:
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._error is not None and self._failures != 0:
            self.refused += 1
            self._failures = None if self._failures is None else self._failures - 1
            stored.set_exception(self._error)
            return stored
        self.payloads.append(payload)
        try:
            inbound = self._parse(payload)
        except Exception as error:
            self.unreadable.append(repr(error))
            inbound = None
        if inbound is not None:
            self.inbound.append(inbound)
        if self.holds:
            self.held.append(stored)
        else:
            stored.set_result(None)
        return stored

    def connected(self, connections: int = 1) -> None:
        self.calls.append(CONNECTED)
        self.open_connections = connections

    def disconnected(self, reason: str) -> None:
        self.calls.append(reason)

    def heard(self) -> None:
        self.heards += 1

    async def poll(self) -> None:
        raise AssertionError("the platform pushes")


class NoFiles:
    """Fetches no file."""

    def prepare(
        self, place: str, text: str, attachments: Sequence[Attachment], delay: int = 0
    ) -> Prepared:
        """The text as it is."""
        return Prepared(text, delay)

    def keep(self, *given: object, **named: object) -> None:
        """Nothing is kept."""


async def until(promise: Callable[[], Result], seconds: float = WAIT_SECONDS) -> Result:
    """Wait until this is true."""
    async with asyncio.timeout(seconds):
        while not (found := promise()):
            await asyncio.sleep(0.01)
    return found


async def no_note(reference: str) -> None:
    """For a platform that has nothing to note."""
    raise AssertionError(reference)
