"""Pauses of an account: those that a person asked for, and those between two attempts to connect.

Both end at once when a person resumes the channel. Commits of responses must not end them: the
platform would be asked too often.
"""

from __future__ import annotations

import asyncio

from bullpen.channels.health import HealthReporter
from bullpen.channels.waiting import wait_at_most, wait_for_first
from bullpen.core.channels.health import ChannelState

POLL_SECONDS = 15.0
"""How often the store is read, if a wake-up is lost."""


class Pauses:
    """Waits while an account is paused, or before it is tried again."""

    def __init__(self, health: HealthReporter) -> None:
        self._health = health
        self._changed = asyncio.Event()
        self._retry = asyncio.Event()

    def wake(self) -> None:
        """The channel may have been paused or resumed."""
        self._changed.set()

    def retry(self) -> None:
        """A person may have asked for an attempt at once."""
        self._retry.set()

    async def until_one(self) -> None:
        """Wait until the channel is paused."""
        self._changed.clear()  # before the look: a wake-up during it must not be lost
        while await self._health.find_pause() is None:
            await wait_at_most(self._changed, POLL_SECONDS)
            self._changed.clear()

    async def until_none(self) -> None:
        """Wait until the channel is not paused; meanwhile its state is `paused`."""
        self._changed.clear()
        while (pause := await self._health.find_pause()) is not None:
            self._health.set(ChannelState.PAUSED, pause.code, pause.reason, pause.hint)
            await wait_at_most(self._changed, POLL_SECONDS)
            self._changed.clear()

    async def wait_to_retry(self, seconds: float) -> bool:
        """Wait before the next attempt; returns whether a person asked for it at once."""
        asked = False

        async def until_asked() -> None:
            nonlocal asked
            while not asked:
                await self._retry.wait()
                self._retry.clear()
                asked = await self._health.is_retry_asked()

        await wait_for_first(until_asked(), self.until_one(), seconds=seconds)
        return asked
