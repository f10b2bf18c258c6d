"""Intake: payloads of the platform are parsed in order, and stored many in one transaction.

A payload is acknowledged to the platform when its future is done, which is after the commit. While
the store cannot be written, intake keeps the payloads and tries again: not every platform sends
them a second time.

After a gap in the connection, intake is behind until a catch-up has stored the missed messages.
Live payloads wait for that, for some seconds. They move no cursor meanwhile, so that the next
catch-up begins where messages may be missing.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from traceback import extract_tb
from typing import Protocol

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.inbound import ChatChange, Deleted, Edited, Inbound, Payload, Written
from bullpen.channels.incoming.decide import Incoming
from bullpen.channels.incoming.follow_up import NOTHING, Taken
from bullpen.core.errors import Overloaded, StoreError
from bullpen.core.store.group_commit import savepoint
from bullpen.core.store.transaction import Transaction

MAX_BATCH = 100
GATHER_SECONDS = 0.005
"""The least time between two batches of a burst, which then needs fewer commits."""
MAX_WAITING = 5_000
"""The most payloads in memory. More are refused, so that the platform sends them again."""
RETRY_SECONDS = 1.0
HOLD_SECONDS = 15.0
"""How long live payloads wait for the messages that were missed."""


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
    missed: bool


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
        catches_up: bool = False,
    ) -> None:
        """`on_taken` is called after the commit, for each message that was stored.

        `poll` adds the new payloads of the feed, for a platform that does not push. `catches_up`:
        missed messages are read from the cursor of each chat.
        """
        self._store = store
        self._parse = parse
        self._incoming = incoming
        self._connection = connection
        self._on_taken = on_taken
        self._poll = poll
        self._log = log
        self._reorders = reorders
        self._catches_up = catches_up
        self._items: deque[_Item] = deque()
        self._missed: deque[_Item] = deque()
        self._storing = False
        self._behind = self._in_gap = False
        self._held_until = 0.0
        self._arrived = asyncio.Event()
        self.last_payload_at = 0
        """When the last payload arrived; a connection that answers pings may bring none."""
        self.gaps = 0
        """The gaps that have ended."""
        self.connected = connection.connected
        self.heard = connection.heard

    async def poll(self) -> None:
        """Take in the new payloads of the feed."""
        assert self._poll is not None
        await self._poll()
        self.heard()

    def disconnected(self, reason: str) -> None:
        """The platform cannot reach the client: what arrives next comes after a gap."""
        self._connection.disconnected(reason)
        self.begin_gap()

    def begin_gap(self) -> None:
        """Messages may be missing from now on, until `caught_up`."""
        if self._catches_up:
            self._behind = self._in_gap = True
            self._held_until = math.inf
            if self._items:
                self._limit_hold()

    def end_gap(self) -> None:
        """The platform reaches the client again: what is still missing can be fetched."""
        self.begin_gap()
        self._in_gap = False
        self.gaps += 1

    def caught_up(self, gaps: int) -> None:
        """The messages of these `gaps` are stored; another gap may have begun meanwhile."""
        if gaps == self.gaps and not self._in_gap:
            self._behind = False
            self._held_until = 0.0
            self._arrived.set()

    def _limit_hold(self) -> None:
        loop = asyncio.get_running_loop()
        self._held_until = loop.time() + HOLD_SECONDS
        loop.call_later(HOLD_SECONDS, self._arrived.set)

    def add(self, payload: Payload, *, missed: bool = False) -> asyncio.Future[None]:
        """Take this in, in the order of the calls; one that was missed does not wait.

        Nor does a command or a button: its platform wants the answer within seconds.
        """
        self.heard()
        self.last_payload_at = self._store.now
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        stored.add_done_callback(_retrieve)
        try:
            inbound = self._parse(payload)
        except Exception as error:
            # The text of the error may have a part of the payload, which is a person's.
            where = extract_tb(error.__traceback__)[-1]
            name, file = type(error).__name__, Path(where.filename).name
            text = "ignored a payload that cannot be read: %s in line %s of %s"
            self._log.error(text, name, where.lineno, file)
            inbound = None
        waits = not (missed or (self._behind and not _has_place(inbound)))
        items = self._items if waits else self._missed
        if inbound is None or self._incoming.is_ignored(self._passing(inbound, missed)):
            stored.set_result(None)
        elif len(items) >= MAX_WAITING:
            stored.set_exception(Overloaded("too many messages wait for the database"))
        else:
            items.append(_Item(inbound, stored, missed))
            if self._held_until == math.inf and waits:
                self._limit_hold()
            self._arrived.set()
        return stored

    def _passing(self, inbound: Inbound, missed: bool) -> Inbound:
        """The same, without a cursor if that would pass a message that is not stored yet."""
        if (missed and self._catches_up) or self._behind or self._items or self._storing:
            return _without_cursor(inbound)
        return inbound

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
        inbounds = [
            _without_cursor(item.inbound) if self._behind and not item.missed else item.inbound
            for item in batch
        ]
        self._storing = True
        taken = await self._store_all(inbounds)
        self._storing = False
        for item, result in zip(batch, taken, strict=True):
            if not item.stored.done():
                item.stored.set_result(None)
            if result != NOTHING:
                self._on_taken(result)

    async def _store_all(self, batch: list[Inbound]) -> list[Taken]:
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

    def _take_all(self, tx: Transaction, batch: list[Inbound]) -> list[Taken]:
        """Take all in, within one savepoint; if one of them fails, each within its own."""
        if len(batch) > 1:
            try:
                with savepoint(tx):
                    return [self._incoming.take(tx, each) for each in batch]
            except (sqlite3.Error, StoreError):
                raise
            except Exception:
                self._log.info("a batch of messages is stored one by one")
        return [self._take_one(tx, each) for each in batch]

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


def _has_place(inbound: Inbound | None) -> bool:
    """Whether it is in the history of its chat, or about something there."""
    match inbound:
        case Written():
            return bool(inbound.cursor)
        case Edited() | Deleted() | ChatChange():
            return True
    return False


def _without_cursor(inbound: Inbound) -> Inbound:
    return replace(inbound, cursor="") if isinstance(inbound, Written) else inbound


def _retrieve(future: asyncio.Future[None]) -> None:
    """Mark an exception as seen, since a platform may not wait for the future."""
    if not future.cancelled():
        future.exception()
