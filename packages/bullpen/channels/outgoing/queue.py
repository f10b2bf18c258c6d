"""Outgoing: responses are leased, and each chat gets its own in order, independent of other chats.

A delivery is one chat's turn: `delivery.py` sends its parts. Here is what happens around it: which
chat may send when, and that a chat that waits (for a rate limit, or after a failure) holds up no
other chat, and is not overtaken by its own later responses.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from sqlalchemy import bindparam, select

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.waiting import wait_at_most
from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.errors import BullpenError, StaleToken
from bullpen.core.message import ReplyTo
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.delivery import Delivery
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.states import ResponseState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

MAX_CHATS = 16
"""The most chats that are sent to at the same time."""
MAX_LEASED = 32
"""The most responses that this process has leased and not sent."""
POLL_SECONDS = 5.0
"""A wake-up arrives at each commit, but not when a retry is due."""
RETRY_SECONDS = 1.0
DUE_SECONDS = 0.1
LEASE_MS = MINUTE
"""How long a chat waits for a response whose lease was not ended."""
LOOK_UP_MS = MINUTE
"""How long a chat waits for a look-up, before its end is checked again."""
RECHECK_MS = 2 * SECOND
MAX_WAIT_OF_LEASE = 1 / 4
"""The part of their lease for which responses wait in memory."""
STOP_SECONDS = 8.0
MAX_RESTORED = 1_000

Deliver = Callable[[Delivery], Awaitable[int | None]]
"""Delivers one response. If it must wait, the time until which its chat waits; otherwise None."""

PutBack = Callable[[list[Delivery], int], Awaitable[None]]
"""Returns leased responses to the store until a time, without counting an attempt."""


R = RESPONSES.c

SELECT_WAITING: Statement[tuple[str | None, str | None, str, int]] = Statement(
    lambda: (
        select(R.reply_to, R.sender_id, R.sender, R.available_at)
        .where(
            R.channel == bindparam("channel"),
            R.status == const(ResponseState.PENDING.value),
            R.available_at > bindparam("now"),
        )
        .limit(const(MAX_RESTORED))
    )
)

SELECT_LOOKED_UP: Statement[tuple[int, str | None, str | None, str]] = Statement(
    lambda: (
        select(R.id, R.reply_to, R.sender_id, R.sender)
        .where(
            R.channel == bindparam("channel"),
            R.status == const(ResponseState.UNKNOWN.value),
            R.recover_at.is_not(None),
            R.tell_at > bindparam("now"),
        )
        .limit(const(MAX_RESTORED))
    )
)


def chat_of(delivery: Delivery) -> str:
    """The chat of a delivery: what must stay in order."""
    return _chat(delivery.reply_to, delivery.sender_id, delivery.sender)


def _chat(reply_to: str | None, sender_id: str | None, sender: str) -> str:
    return ReplyTo.parse(reply_to).chat if reply_to else f"@{sender_id or sender}"


def waiting_chats(tx: Transaction, channel: str) -> list[tuple[str, int]]:
    """The chats whose responses are not due yet, and when they are."""
    rows = tx.all(SELECT_WAITING, {"channel": channel, "now": tx.now})
    return [(_chat(reply_to, id_, name), until) for reply_to, id_, name, until in rows]


def looked_up_chats(tx: Transaction, channel: str) -> list[tuple[int, str]]:
    """The responses that are looked up before people are notified, and their chats."""
    rows = tx.all(SELECT_LOOKED_UP, {"channel": channel, "now": tx.now})
    return [(response, _chat(reply_to, id_, name)) for response, reply_to, id_, name in rows]


class Outgoing:
    """The responses of one account on their way."""

    def __init__(
        self,
        store: AsyncStore,
        channel: str,
        worker: Callable[[], str],
        deliver: Deliver,
        put_back: PutBack,
        log: logging.Logger,
        *,
        chat_interval: float = 0.0,
    ) -> None:
        self._store = store
        self._channel = channel
        self._worker = worker
        self._deliver = deliver
        self._put_back = put_back
        self._log = log
        self._interval = chat_interval
        self._waiting: dict[str, deque[Delivery]] = {}
        self._leased_at: dict[int, int] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._holds: dict[str, int] = {}
        self._released: dict[str, asyncio.Event] = {}
        self._looked_up: dict[int, str] = {}
        self._settled_now: set[int] = set()
        self._released_now: set[str] = set()
        self._stale: set[str] = set()
        """Chats whose waiting responses were leased before an earlier one became due again."""
        self._places = asyncio.Semaphore(MAX_CHATS)
        self._due = asyncio.Event()
        self.open = asyncio.Event()
        """Set while the account can send."""

    def wake(self) -> None:
        """There may be responses to send."""
        self._due.set()

    def hold(self, chat: str, until: int, *, look_up: int = 0) -> None:
        """Send nothing to this chat before this time: no response overtakes an earlier one.

        With the id of a response that is looked up, the hold ends when it is settled.
        """
        self._holds[chat] = max(until, self._holds.get(chat, 0))
        self._released.setdefault(chat, asyncio.Event())
        if look_up:
            self._looked_up[look_up] = chat

    def settle(self, response: int) -> None:
        """End the hold for a response whose outcome is known now."""
        self._settled_now.add(response)
        if (chat := self._looked_up.pop(response, None)) is not None:
            self.release(chat)

    def release(self, chat: str) -> None:
        """End the hold of a chat."""
        self._holds.pop(chat, None)
        self._released_now.add(chat)
        if self._waiting.get(chat):
            self._stale.add(chat)
        if event := self._released.pop(chat, None):
            event.set()
        self._due.set()

    async def restore_holds(self) -> None:
        """Hold the chats in which a response already waits, so that later ones do not overtake."""
        for chat, until in await self._store.read(lambda tx: waiting_chats(tx, self._channel)):
            self.hold(chat, until)

    async def run(self) -> None:
        """Lease and send, until cancelled."""
        while True:
            await self.open.wait()
            self._due.clear()
            try:
                leased = await self._lease()
            except BullpenError as error:
                self._log.warning("responses wait, because %s", error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if not leased or self._count() >= MAX_LEASED:
                await wait_at_most(self._due, self._poll_seconds())

    def _poll_seconds(self) -> float:
        """How long to sleep without a wake-up: less if the hold of a chat ends earlier."""
        left = [(until - self._store.now) / SECOND for until in self._holds.values()]
        # Its responses are due a moment after the hold, since they were put back after it.
        soon = [max(each, 0.0) + DUE_SECONDS for each in left if each > -POLL_SECONDS]
        return min([POLL_SECONDS, *soon])

    async def stop(self) -> None:
        """Finish the parts that are being sent, and return everything else."""
        self.open.clear()
        rest = [each for waiting in self._waiting.values() for each in waiting]
        for waiting in self._waiting.values():
            waiting.clear()
        self._leased_at.clear()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=STOP_SECONDS)
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        if rest:
            await self._put_back(rest, self._store.now)

    async def _lease(self) -> list[Delivery]:
        space = MAX_LEASED - self._count()
        if space <= 0:
            return []
        self._released_now.clear()
        self._settled_now.clear()
        now = self._store.now

        def lease(tx: Transaction) -> tuple[list[Delivery], list[tuple[int, str]]]:
            # First, since it may find responses whose client was killed while it sent them.
            leased = lease_responses(tx, self._channel, self._worker(), space)
            return leased, looked_up_chats(tx, self._channel)

        leased, looked_up = await self._store.write(lease)
        for each in leased:
            self.settle(each.id)  # a person may have retried it before its look-up
        for response, chat in looked_up:
            if response not in self._settled_now:
                self.hold(chat, now + LOOK_UP_MS, look_up=response)
        # An earlier response of a chat that was released meanwhile may not be among these.
        early = [each for each in leased if chat_of(each) in self._released_now]
        for delivery in sorted(leased, key=lambda each: each.id):
            chat = chat_of(delivery)
            if delivery in early:
                continue
            self._leased_at[delivery.id] = now
            self._waiting.setdefault(chat, deque()).append(delivery)
            if chat not in self._tasks:
                self._tasks[chat] = asyncio.create_task(self._serve(chat))
        if early:
            await self._put_back(early, self._store.now)
        return leased

    def _count(self) -> int:
        return sum(map(len, self._waiting.values())) + len(self._tasks)

    async def _serve(self, chat: str) -> None:
        """Send the waiting responses of one chat, one after the other."""
        waiting = self._waiting[chat]
        try:
            while waiting:
                until = await self._wait_for(chat) if self.open.is_set() else self._store.now
                if until is None and not self._may_send(chat, waiting):
                    until = self._store.now
                if until is not None:
                    rest = list(waiting)
                    waiting.clear()
                    self._stale.discard(chat)
                    for each in rest:
                        del self._leased_at[each.id]
                    await self._put_back(rest, until)
                    # What was leased meanwhile comes after what was put back.
                    self._released_now.add(chat)
                    if waiting:
                        self._stale.add(chat)
                    continue
                async with self._places:
                    if self.open.is_set() and self._may_send(chat, waiting):
                        delivery = waiting.popleft()
                        del self._leased_at[delivery.id]
                        until = await self._try(delivery)
                if until is not None:
                    self.hold(chat, until)
                elif self._interval and waiting:
                    await asyncio.sleep(self._interval)
        except BullpenError as error:
            self._log.warning("responses wait for their lease: %s", error)
            self.hold(chat, self._store.now + LEASE_MS)
        finally:
            del self._waiting[chat], self._tasks[chat]
            self._stale.discard(chat)
            self._due.set()

    def _may_send(self, chat: str, waiting: Sequence[Delivery]) -> bool:
        """Whether the first of these is really the chat's first, and its lease is long enough."""
        return bool(waiting) and chat not in self._stale and not self._is_late(waiting[0])

    def _is_late(self, delivery: Delivery) -> bool:
        """Whether a response waited so long that its lease may end before it is sent."""
        lease = self._store.store.settings.delivery_lease_seconds * SECOND
        return self._store.now - self._leased_at[delivery.id] > lease * MAX_WAIT_OF_LEASE

    def _held_until(self, chat: str) -> int | None:
        until = self._holds.get(chat)
        if until is None or until > self._store.now:
            return until
        self.release(chat)
        return None

    async def _wait_for(self, chat: str) -> int | None:
        """Wait a moment while the chat is held; returns when its responses are due again.

        They are leased again even if the hold has ended, so that the first one comes first.
        """
        until = self._held_until(chat)
        if until is None:
            return None
        lease = self._store.store.settings.delivery_lease_seconds
        wait = min((until - self._store.now) / SECOND, lease * MAX_WAIT_OF_LEASE)
        await wait_at_most(self._released[chat], wait)
        until = self._held_until(chat)
        now = self._store.now
        if until is None:
            return now
        # A look-up may end the hold earlier.
        return min(until, now + RECHECK_MS) if chat in self._looked_up.values() else until

    async def _try(self, delivery: Delivery) -> int | None:
        try:
            return await self._deliver(delivery)
        except StaleToken as error:
            self._log.info("response %d is delivered by another process: %s", delivery.id, error)
            return None
        except BullpenError as error:
            self._log.warning("response %d waits for its lease: %s", delivery.id, error)
        except Exception:
            self._log.exception("response %d waits for its lease", delivery.id)
        return self._store.now + LEASE_MS
