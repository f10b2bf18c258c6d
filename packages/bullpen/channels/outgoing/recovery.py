"""Recovery: parts with an unknown outcome are looked up on the platform before people are notified.

A part that is found counts as sent, and the delivery continues after it. A part that was not sent
is sent again without a label. Only where the platform cannot tell does the response stay `unknown`,
until a person retries it; then the text says that it may be a duplicate.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.outgoing.parts import Parts
from bullpen.channels.outgoing.queue import Outgoing, chat_of
from bullpen.channels.platform import Platform, Recovered, Verdict
from bullpen.channels.waiting import wait_at_most
from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.errors import BullpenError, StaleToken
from bullpen.core.outbox.delivery import Delivery
from bullpen.core.outbox.recovery import (
    cannot_tell,
    found,
    lease_unknown,
    look_again,
    not_sent,
    receipts_since,
)
from bullpen.core.store.transaction import Transaction

MAX_LEASED = 10
POLL_SECONDS = 15.0
LATER_MS = MINUTE
UNREACHABLE_MS = 5 * SECOND
OTHERS_MS = 5 * MINUTE
"""How long before an attempt other parts were sent for which a platform might take its part."""


class Recovery:
    """Looks up the unknown parts of one account."""

    def __init__(
        self,
        store: AsyncStore,
        platform: Platform,
        outgoing: Outgoing,
        worker: Callable[[], str],
        store_id: str,
        log: logging.Logger,
    ) -> None:
        self._store = store
        self._platform = platform
        self._outgoing = outgoing
        self._worker = worker
        self._store_id = store_id
        self._log = log
        self._channel = platform.context.account
        self._due = asyncio.Event()

    def wake(self) -> None:
        """There is something to look up."""
        self._due.set()

    async def run(self) -> None:
        """Look up what is due, until cancelled."""
        while True:
            await self._outgoing.open.wait()
            self._due.clear()
            try:
                looked_up = await self.look_up_due()
            except BullpenError as error:
                self._log.warning("look-ups wait, because %s", error)
                looked_up = 0
            if not looked_up:
                await wait_at_most(self._due, POLL_SECONDS)

    async def look_up_due(self) -> int:
        """Look up what is due now; returns how many responses that were."""
        leased = await self._store.write(
            lambda tx: lease_unknown(tx, self._channel, self._worker(), MAX_LEASED)
        )
        for delivery in leased:
            until = self._store.now + LATER_MS
            self._outgoing.hold(chat_of(delivery), until, look_up=delivery.id)
        await asyncio.gather(*(self._settle(each) for each in leased))
        return len(leased)

    async def _settle(self, delivery: Delivery) -> None:
        """Look up one response, and record the verdict."""
        chat = chat_of(delivery)
        try:
            recovered = await self._look_up(delivery)
        except Exception as error:
            self._log.info("a look-up for response %d failed: %r", delivery.id, error)
            recovered = None
        with suppress(StaleToken):  # a proof arrived meanwhile
            await self._store.write(lambda tx: self._record(tx, delivery, recovered))
        if recovered is None:
            self._outgoing.hold(chat, self._store.now + UNREACHABLE_MS, look_up=delivery.id)
        elif recovered.verdict is Verdict.LATER:
            self._outgoing.hold(chat, self._store.now + LATER_MS, look_up=delivery.id)
        else:
            self._outgoing.settle(delivery.id)

    async def _look_up(self, delivery: Delivery) -> Recovered:
        part = delivery.part
        if part is None:
            return Recovered(Verdict.CANNOT_TELL)
        parts = Parts.of(delivery, self._platform.fits, self._store_id)
        began_at = delivery.sending_since or self._store.now
        sending = parts.sending(delivery, part, began_at=began_at)
        others = await self._store.read(
            lambda tx: receipts_since(tx, self._channel, began_at - OTHERS_MS)
        )
        others |= {each.id for each in delivery.receipts}
        sending = replace(sending, others=others)
        async with asyncio.timeout(self._platform.send_seconds):
            return await self._platform.recover(sending)

    def _record(self, tx: Transaction, delivery: Delivery, recovered: Recovered | None) -> None:
        token = delivery.claim_token
        assert token is not None
        if recovered is None:
            look_again(tx, token, UNREACHABLE_MS)
            return
        match recovered.verdict:
            case Verdict.FOUND:
                found(tx, token, recovered.receipt)
            case Verdict.NOT_SENT:
                not_sent(tx, token)
            case Verdict.LATER:
                look_again(tx, token, LATER_MS)
            case Verdict.CANNOT_TELL:
                cannot_tell(tx, token, "the platform cannot tell whether it arrived")
