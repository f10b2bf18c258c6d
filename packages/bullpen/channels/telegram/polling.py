"""Long polling: each request for updates confirms the ones that were stored before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bullpen.channels.failures import ChannelDown, OutcomeUnknown, RateLimited, SendFailed
from bullpen.channels.inbound import Payload
from bullpen.channels.platform import ChannelContext, Intake
from bullpen.channels.telegram.api import BotApi
from bullpen.channels.telegram.updates import UPDATE_TYPES

POLL_SECONDS = 50
POLL_LIMIT = 100
SAME_OFFSET_SECONDS = 3.0
"""Telegram delays a request for the same offset within this time."""
MAX_PAUSE_SECONDS = 30.0
CONFLICT_SECONDS = 5.0
CONTESTED_MS = 60_000
"""After a conflict, the account is connected when it has polled for so long without another one.

Of two processes, each ends the requests of the other, and is answered for a moment.
"""
CONTESTED_POLL_SECONDS = 10


class Polling:
    """The requests for updates of one account."""

    def __init__(
        self, context: ChannelContext, api: BotApi, stored: Callable[[Payload], None]
    ) -> None:
        """`stored` is called with each update after its commit."""
        self._context, self._api, self._stored = context, api, stored
        self._contested = False

    async def receive(self, intake: Intake) -> None:
        """Ask for updates; each request confirms the updates that were stored before it."""
        offset = failures = 0
        connected = False
        clear_since = self._context.clock.monotonic()
        while True:
            # The first answer comes at once, so that the state is known.
            seconds = CONTESTED_POLL_SECONDS if self._contested else 0
            try:
                updates = await self._get_updates(offset, POLL_SECONDS if connected else seconds)
            except ChannelDown as error:
                if error.code != "conflict" or self._contested:
                    raise
                # A check, or a single request by hand, is not another process.
                self._contested = True
                reason, pause = error.reason, CONFLICT_SECONDS
                clear_since = self._context.clock.monotonic()
            except SendFailed as error:
                reason, pause = str(error), pause_after(error, failures, self._context.chance)
                failures += 1
            else:
                failures = 0
                intake.heard()
                if self._context.clock.monotonic() - clear_since >= CONTESTED_MS:
                    self._contested = False
                if not connected and not self._contested:
                    connected = True
                    intake.connected()
                offset = await self._take(intake, updates, offset)
                continue
            connected = False
            intake.disconnected(reason)
            await asyncio.sleep(pause)

    async def _get_updates(self, offset: int, seconds: int) -> list[object]:
        found = await self._api.call(
            "getUpdates",
            offset=offset,
            limit=POLL_LIMIT,
            timeout=seconds,
            allowed_updates=UPDATE_TYPES,
        )
        if not isinstance(found, list):
            raise OutcomeUnknown("the answer of Telegram is not a list of updates")
        return found

    async def _take(self, intake: Intake, updates: list[object], offset: int) -> int:
        """Store updates; returns the offset after the last one that is stored."""
        taken: list[tuple[int, asyncio.Future[None], Payload]] = []
        for update in updates:
            number = update.get("update_id") if isinstance(update, dict) else None
            if isinstance(update, dict) and isinstance(number, int):
                taken.append((number, intake.add(update), update))
            else:
                self._context.log.error("an update of Telegram was ignored, because it has no id")
        if taken:
            await asyncio.wait([future for _, future, _ in taken])
        for number, future, update in taken:
            if future.cancelled() or future.exception() is not None:
                break
            offset = number + 1
            self._stored(update)
        else:
            if taken or not updates:
                return offset
        await asyncio.sleep(SAME_OFFSET_SECONDS)  # these come again
        return offset


def pause_after(error: SendFailed, failures: int, chance: Callable[[], float]) -> float:
    """The seconds before the next request after this many failures in a row."""
    if isinstance(error, RateLimited):
        return error.seconds
    longest: float = min(MAX_PAUSE_SECONDS, 2.0**failures)
    return longest * (0.5 + chance() / 2)
