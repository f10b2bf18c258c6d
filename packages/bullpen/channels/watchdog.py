"""The watchdog: an account that is connected but hears nothing is compared with the platform.

Connections exist that answer every ping and deliver no message. After a time without any message
the platform is asked whether it has newer ones. If it has, they are fetched, and the account
connects again. Accounts whose whole list or feed is read at intervals need no watchdog.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.catch_up import CatchUpReader, read_from, recent_chats
from bullpen.channels.platform import CatchUp, Place, Platform
from bullpen.core.clock import HOUR, MINUTE

SILENT_MS = 15 * MINUTE
"""Without a message for this time, the platform is asked."""
MAX_SILENT_MS = 4 * HOUR
"""The longest time between two reconnects that brought nothing."""
CHECK_SECONDS = 60.0
CONFIRM_SECONDS = 10.0
"""A message may be on its way when the platform is asked; so it is asked twice."""
MAX_PLACES = 5
ASK_SECONDS = 60.0


class Silent(ConnectionError):
    """The account is connected, and messages do not arrive."""


class Connection(Protocol):
    """What is known of the connection."""

    is_connected: bool
    connected_at: int

    def silent(self, reason: str) -> None:
        """Messages do not arrive."""
        ...


class Watchdog:
    """Watches the connection of one account."""

    def __init__(
        self,
        store: AsyncStore,
        platform: Platform,
        connection: Connection,
        last_payload_at: Callable[[], int],
        catch_up: CatchUpReader,
        reconnect: Callable[[Silent], None],
        log: logging.Logger,
    ) -> None:
        self._store = store
        self._platform = platform
        self._connection = connection
        self._last_payload_at = last_payload_at
        self._catch_up = catch_up
        self._reconnect = reconnect
        self._log = log
        self._patience = SILENT_MS
        self._alarm_at = 0

    async def run(self) -> None:
        """Watch until cancelled."""
        if self._platform.catch_up in (CatchUp.ACCOUNT, CatchUp.FEED):
            return
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                if self._is_quiet() and await self._has_newer():
                    await self._alarm()
            except Exception as error:
                self._log.info("the platform was not asked for newer messages: %r", error)

    def _is_quiet(self) -> bool:
        if not self._connection.is_connected:
            return False
        heard_at = self._last_payload_at()
        if heard_at > self._alarm_at:
            self._patience = SILENT_MS
        since = max(heard_at, self._connection.connected_at)
        return self._store.now - since >= self._patience

    async def _has_newer(self) -> bool:
        if not await self._ask():
            return False
        await asyncio.sleep(CONFIRM_SECONDS)
        return self._is_quiet() and await self._ask()

    async def _ask(self) -> bool:
        async with asyncio.timeout(ASK_SECONDS):
            for place in await self._places():
                if await self._platform.newest(place):
                    return True
        return False

    async def _places(self) -> list[Place]:
        """The chats in which people wrote last."""
        now, channel = self._store.now, self._platform.context.account
        if self._platform.catch_up is CatchUp.NONE:
            return [Place(chat="", direct=False, cursor="", since=now - self._patience)]
        chats = await self._store.read(lambda tx: recent_chats(tx, channel, now))
        chats.sort(key=lambda each: each.last_in_at or 0, reverse=True)
        return [read_from(each, now) for each in chats[:MAX_PLACES]]

    async def _alarm(self) -> None:
        reason = "connected, but the platform has messages that did not arrive"
        self._connection.silent(reason)
        await self._catch_up.catch_up()
        self._alarm_at = self._store.now
        self._patience = min(self._patience * 2, MAX_SILENT_MS)
        self._reconnect(Silent(reason))
