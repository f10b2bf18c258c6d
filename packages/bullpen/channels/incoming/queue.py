"""Intake: payloads of the platform are parsed in order, and stored many in one transaction.

A payload is acknowledged to the platform when its future is done, which is after the commit. While
the store cannot be written, intake keeps the payloads and tries again: not every platform sends
them a second time.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.inbound import Inbound, Payload, Written
from bullpen.channels.incoming.decide import NOTHING, Incoming, Taken
from bullpen.core.errors import Overloaded, StoreError
from bullpen.core.store.group_commit import savepoint
from bullpen.core.store.transaction import Transaction

MAX_BATCH = 100
GATHER_SECONDS = 0.005
"""The least time between two batches of a burst, which then needs fewer commits."""
MAX_WAITING = 5_000
"""The most payloads in memory. More are refused, so that the platform sends them again."""
RETRY_SECONDS = 1.0


class Connection(Protocol):
    """Follows the connection to the platform."""

    def connected(self, connections: int = 1) -> None:
        """The platform can reach the client."""
        ...

    def disconnected(self, reason: str) -> None:
        """The platform cannot reach the client."""
        ...

    def heard(self) -> None:
        """The platform sent something."""
        ...


@dataclass(slots=True)
class _Item:
    inbound: Inbound
    stored: asyncio.Future[None]


class IntakeQueue:
    """The intake of one account. See `platform.Intake`."""

    def __init__(
        self,
        store: AsyncStore,
        parse: Callable[[Payload], Inbound | None],
        incoming: Incoming,
        connection: Connection,
        on_taken: Callable[[Taken], None],
        log: logging.Logger,
        *,
        poll: Callable[[], Awaitable[None]] | None = None,
        reorders: bool = False,
    ) -> None:
        """`on_taken` is called after the commit, for each message that was stored.

        `poll` adds the new payloads of the feed, for a platform that does not push.
        """
        self._store = store
        self._parse = parse
        self._incoming = incoming
        self._connection = connection
        self._on_taken = on_taken
        self._poll = poll
        self._log = log
        self._reorders = reorders
        self._items: deque[_Item] = deque()
        self._missed: deque[_Item] = deque()
        self._held_until = 0.0
        self._arrived = asyncio.Event()
        self.last_payload_at = 0
        """When the last payload arrived; a connection that answers pings may bring none."""
        self.connected = connection.connected
        self.disconnected = connection.disconnected
        self.heard = connection.heard

    async def poll(self) -> None:
        """Take in the new payloads of the feed."""
        assert self._poll is not None
        await self._poll()
        self.heard()

    def hold(self, seconds: float) -> None:
        """Keep live payloads until `release`, at most this time: missed messages come first."""
        loop = asyncio.get_running_loop()
        self._held_until = loop.time() + seconds
        loop.call_later(seconds, self._arrived.set)

    def release(self) -> None:
        """Store live payloads again."""
        self._held_until = 0.0
        self._arrived.set()

    def add(self, payload: Payload, *, missed: bool = False) -> asyncio.Future[None]:
        """Take this in, in the order of the calls; one that was missed does not wait for `hold`."""
        self.heard()
        self.last_payload_at = self._store.now
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        stored.add_done_callback(_retrieve)
        try:
            inbound = self._parse(payload)
        except Exception as error:
            # Neither the text nor the payload: they are a person's.
            self._log.error("a payload was ignored, because it cannot be read: %r", error)
            inbound = None
        if inbound is None or self._incoming.is_ignored(inbound):
            stored.set_result(None)
        elif len(self._items) >= MAX_WAITING:
            stored.set_exception(Overloaded("too many messages wait for the database"))
        else:
            (self._missed if missed else self._items).append(_Item(inbound, stored))
            self._arrived.set()
        return stored

    async def run(self) -> None:
        """Store what arrives, until cancelled."""
        loop = asyncio.get_running_loop()
        earliest = 0.0
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._missed or (self._items and loop.time() >= self._held_until):
                items = self._missed or self._items
                wait = earliest - loop.time()
                if wait > 0 and len(items) < MAX_BATCH:
                    await asyncio.sleep(wait)
                began = loop.time()
                batch = [items.popleft() for _ in range(min(MAX_BATCH, len(items)))]
                await self._take(batch)
                # Single messages, each after the acknowledgement of the last, never wait.
                earliest = began + GATHER_SECONDS if items else 0.0

    async def drain(self) -> None:
        """Store what has arrived so far; called at the end, when nothing more arrives."""
        batch = [*self._missed, *self._items]
        self._missed.clear()
        self._items.clear()
        if batch:
            await self._take(batch)

    async def _take(self, batch: list[_Item]) -> None:
        if self._reorders:
            _sort(batch)
        taken = await self._store_all(batch)
        for item, result in zip(batch, taken, strict=True):
            if not item.stored.done():
                item.stored.set_result(None)
            if result != NOTHING:
                self._on_taken(result)

    async def _store_all(self, batch: list[_Item]) -> list[Taken]:
        """Store these in one transaction; if the database refuses one, each in its own."""
        while True:
            try:
                return await self._store.write(lambda tx: self._take_all(tx, batch))
            except StoreError as error:
                self._log.warning("messages wait, because %s", error)
                await asyncio.sleep(RETRY_SECONDS)
            except Exception:
                # On PostgreSQL a statement that fails ends the transaction, despite savepoints.
                if len(batch) == 1:
                    self._log.exception("a message was not stored")
                    return [NOTHING]
                break
        return [taken for each in batch for taken in await self._store_all([each])]

    def _take_all(self, tx: Transaction, batch: list[_Item]) -> list[Taken]:
        """Take all in, within one savepoint; if one of them fails, each within its own."""
        if len(batch) > 1:
            try:
                with savepoint(tx):
                    return [self._incoming.take(tx, item.inbound) for item in batch]
            except (sqlite3.Error, StoreError):
                raise
            except Exception:
                self._log.info("a batch of messages is stored one by one")
        return [self._take_one(tx, item.inbound) for item in batch]

    def _take_one(self, tx: Transaction, inbound: Inbound) -> Taken:
        """Take one in; a failure of its own is logged, and does not affect the others."""
        try:
            with savepoint(tx):
                return self._incoming.take(tx, inbound)
        except (sqlite3.Error, StoreError):
            raise
        except Exception:
            self._log.exception("a message was not stored")
            return NOTHING


def _sort(batch: list[_Item]) -> None:
    """Order the messages of each chat by their cursors; the rest of a batch stays in place."""
    places: dict[tuple[str, str], list[int]] = {}
    for at, item in enumerate(batch):
        if isinstance(item.inbound, Written):
            chat = item.inbound.source.chat.id
            places.setdefault((chat, item.inbound.cursor_chat), []).append(at)
    for each in places.values():
        if len(each) > 1:
            found = sorted([batch[at] for at in each], key=_cursor)
            for at, item in zip(each, found, strict=True):
                batch[at] = item


def _cursor(item: _Item) -> tuple[int, str]:
    """Cursors are ordered as `move_cursor` does."""
    assert isinstance(item.inbound, Written)
    return len(item.inbound.cursor), item.inbound.cursor


def _retrieve(future: asyncio.Future[None]) -> None:
    """Mark an exception as seen, since a platform may not wait for the future."""
    if not future.cancelled():
        future.exception()
