"""Catch-up: messages that were written while nobody listened are fetched and taken in.

They go the same way as live ones: receipts make sure that each counts once. It runs at the start,
after each new connection, and when the platform has messages that were not heard.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.failures import ChannelDown, RateLimited, SendFailed
from bullpen.channels.inbound import Inbound, Payload, Written
from bullpen.channels.incoming.queue import IntakeQueue
from bullpen.channels.platform import CatchUp, Place, Platform
from bullpen.channels.waiting import wait_at_most
from bullpen.core.channels.chats import ChatRecord, find_chat, list_chats, move_cursor
from bullpen.core.channels.health import Activity, find_health, report_activity
from bullpen.core.clock import DAY, MINUTE
from bullpen.core.errors import BullpenError
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import format_count

PAGE = 100
MAX_PER_CHAT = 2_000
"""More messages of one chat are not fetched; the owner reads it in the health of the channel."""
MAX_PER_ACCOUNT = 20_000
"""The same for the list of a whole account, which repeats the messages of the last minutes."""
MAX_AGE_MS = DAY
THREAD_AGE_MS = 2 * DAY
"""Threads without a message for this time are not read."""
MARGIN_MS = 10 * MINUTE
"""How far the list of a whole account reaches back before the last catch-up."""
SWEEP_SECONDS = 300.0
"""How often the list of a whole account is read, which finds webhooks that never came."""
FEED = "*"
"""The chat that keeps the cursor of a feed; no platform has a chat of this name."""
MAX_CHATS = 4
MAX_RATE_WAIT_SECONDS = 120.0
MAX_RETRY_SECONDS = 60.0
"""The longest pause after a catch-up that failed; the first ones are shorter."""


@dataclass(slots=True)
class CatchUpResult:
    """What one catch-up found."""

    found: int = 0
    chats: int = 0
    incomplete: int = 0

    def __str__(self) -> str:
        text = f"{format_count(self.found, 'message')} in {format_count(self.chats, 'chat')}"
        if self.incomplete:
            text += f"; {format_count(self.incomplete, 'chat')} not read to the end"
        return text


class CatchUpReader:
    """Fetches the missed messages of one account."""

    def __init__(
        self,
        store: AsyncStore,
        platform: Platform,
        intake: IntakeQueue,
        receiving: asyncio.Event,
        log: logging.Logger,
    ) -> None:
        """`run` does nothing while `receiving` is not set."""
        self._store = store
        self._platform = platform
        self._intake = intake
        self._receiving = receiving
        self._log = log
        self._channel = platform.context.account
        self._needed = asyncio.Event()
        self._feed: Place | None = None
        self._feed_lock = asyncio.Lock()

    def wake(self) -> None:
        """Something may have been missed."""
        self._needed.set()

    def reconnected(self) -> None:
        """Messages were missed: they are stored before live ones, as far as that is quick."""
        self._intake.end_gap()
        self.wake()

    async def run(self) -> None:
        """Catch up whenever it is needed, until cancelled."""
        sweep = SWEEP_SECONDS if self._platform.catch_up is CatchUp.ACCOUNT else None
        failures = 0
        while True:
            retry = min(MAX_RETRY_SECONDS, 2.0 ** (failures - 1)) if failures else None
            await wait_at_most(self._needed, retry or sweep)
            await self._receiving.wait()
            self._needed.clear()
            try:
                await self.catch_up()
                failures = 0
                continue
            except (ChannelDown, SendFailed, BullpenError, OSError, TimeoutError) as error:
                self._log.warning("the catch-up failed: %s", error)
            except Exception:
                self._log.exception("the catch-up failed")
            failures += 1

    async def catch_up(self) -> CatchUpResult:
        """Fetch the missed messages of every chat, and wait until they are stored."""
        result = CatchUpResult()
        if self._platform.catch_up is CatchUp.NONE:
            return result
        gaps = self._intake.gaps
        began_at = self._store.now
        if self._platform.catch_up is CatchUp.FEED:
            await self._read_feed(result)
        else:
            await self._read_places(result)
        self._intake.caught_up(gaps)
        await self._report(began_at, str(result))
        if result.found:
            self._log.info("caught up: %s", result)
        return result

    async def poll(self) -> None:
        """Fetch the new payloads of the feed, and wait until they are stored."""
        await self._read_feed(CatchUpResult())

    async def _read_feed(self, result: CatchUpResult) -> None:
        """Read the feed from where it was last read, or from where the last process left it."""
        async with self._feed_lock:
            now = self._store.now
            if self._feed is None:
                self._feed = await self._store.read(lambda tx: self._feed_place(tx, now))
            place = await self._read(self._feed, result)
            self._feed = replace(place, since=now - MARGIN_MS)

    def _feed_place(self, tx: Transaction, now: int) -> Place:
        chat, health = find_chat(tx, self._channel, FEED), find_health(tx, self._channel)
        cursor = "" if chat is None else chat.cursor or ""
        # At the first start, only the last minutes before it are read.
        times = () if health is None else (health.caught_up_at or 0, health.last_event_at or 0)
        since = max(now - MAX_AGE_MS, max(times, default=0) or now) - MARGIN_MS
        return Place(chat="", direct=False, cursor=cursor, since=since)

    async def _read_places(self, result: CatchUpResult) -> None:
        """Read the chats and threads, or the list of the whole account."""
        limit = asyncio.Semaphore(MAX_CHATS)
        done: set[str] = set()

        async def read(place: Place) -> None:
            async with limit:
                await self._read(place, result)

        while places := [each for each in await self._places() if each.chat not in done]:
            done |= {each.chat for each in places}
            found = result.found
            ends = await asyncio.gather(*(read(each) for each in places), return_exceptions=True)
            for error in ends:
                if error is not None:
                    raise error
            if result.found == found:  # otherwise a thread may have begun
                break

    async def _places(self) -> list[Place]:
        """The chats and threads to read, and where each was last read."""
        now = self._store.now
        oldest = now - MAX_AGE_MS

        def load(tx: Transaction) -> tuple[list[ChatRecord], int | None]:
            health = find_health(tx, self._channel)
            last = None if health is None else health.caught_up_at or health.last_event_at
            return recent_chats(tx, self._channel, now), last

        chats, last = await self._store.read(load)
        if self._platform.catch_up is CatchUp.ACCOUNT:
            if last is None:  # the first start: the past is not read
                await self._report(now, "first start")
                return []
            return [Place(chat="", direct=False, cursor="", since=max(oldest, last - MARGIN_MS))]
        known = {each.chat for each in chats}
        places = [read_from(each, now) for each in chats]
        if last is not None:  # a person may have opened a direct chat meanwhile
            places += [
                Place(chat=each.id, direct=True, cursor="", since=max(oldest, last - MARGIN_MS))
                for each in await self._platform.chats() or ()
                if each.direct and each.id not in known
            ]
        return places

    async def _report(self, at: int, text: str) -> None:
        activity = Activity(caught_up_at=at, caught_up=text)
        await self._store.write(lambda tx: report_activity(tx, self._channel, activity))

    async def _read(self, place: Place, result: CatchUpResult) -> Place:
        """Read one place page by page; returns up to where."""
        found = 0
        stored: Sequence[asyncio.Future[None]] = ()
        while found < (MAX_PER_CHAT if place.chat else MAX_PER_ACCOUNT):
            try:
                page = await self._platform.missed(place, PAGE)
            except RateLimited as error:
                await asyncio.sleep(min(error.seconds, MAX_RATE_WAIT_SECONDS))
                continue
            stored = [self._intake.add(each, missed=True) for each in page]
            await asyncio.gather(*stored)
            found += len(page)
            cursor, at = self._end_of(page)
            if cursor and self._platform.catch_up is CatchUp.CHATS:
                await self._move_cursor(place, cursor, at)
            last, place = place, replace(place, cursor=cursor or place.cursor)
            if len(page) < PAGE or place == last:
                break
        else:
            result.incomplete += 1
        result.found += found
        result.chats += 1
        return place

    async def _move_cursor(self, place: Place, cursor: str, at: int) -> None:
        """Continue after this message the next time, also if it was taken in live."""
        await self._store.write(lambda tx: move_cursor(tx, self._channel, place.chat, cursor, at))

    def _end_of(self, page: Sequence[Payload]) -> tuple[str, int]:
        """The last place in a page, and its time; empty if it has none, or cannot be read."""
        for each in reversed(page):
            if self._platform.catch_up is CatchUp.FEED:
                return str(each["cursor"]), 0
            try:
                new = self._platform.parse(each)
            except Exception:  # noqa: S112 - intake has logged it
                continue
            if isinstance(new, Written) and new.cursor:
                return new.cursor, new.source.at
        return "", 0


def parse_feed(platform: Platform) -> Callable[[Payload], Inbound | None]:
    """The `parse` of a platform whose payloads have their places in a feed."""

    def parse(payload: Payload) -> Inbound | None:
        new = platform.parse(payload)
        if isinstance(new, Written):
            new = replace(new, cursor=str(payload["cursor"]), cursor_chat=FEED)
        return new

    return parse


def read_from(chat: ChatRecord, now: int) -> Place:
    """Where a chat is read: from its cursor, else from when it was allowed or last heard."""
    since = now - MAX_AGE_MS
    if chat.cursor is None:
        since = max(since, chat.last_in_at or chat.updated_at)
    return Place(chat=chat.chat, direct=chat.direct, cursor=chat.cursor or "", since=since)


def recent_chats(tx: Transaction, channel: str, now: int) -> list[ChatRecord]:
    """The chats to read. Of threads, which are chats of their own here, only those in use."""
    chats: list[ChatRecord] = []
    after = ""
    while page := list_chats(tx, channel, after):
        after = page[-1].chat
        chats += [
            each
            for each in page
            if each.migrated_to is None
            and (each.direct or each.access is not None or _in_use(each, now))
        ]
    return chats


def _in_use(chat: ChatRecord, now: int) -> bool:
    return chat.last_in_at is not None and chat.last_in_at > now - THREAD_AGE_MS
