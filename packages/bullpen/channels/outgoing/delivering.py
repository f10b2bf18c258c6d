"""Delivering: one response is sent part by part, and the error of a send decides what follows.

error of `send`     the response                           its chat
NotSent             put back, uncounted                    the account waits and tries again
RateLimited         put back, uncounted                    waits as long as the platform asks
Refused (a file)    a text with the reason replaces it     continues
Refused             dead                                   continues
OptedOut            dead, and the owner is notified        continues
ChatMoved           put back, to the new chat              continues there
OutcomeUnknown      unknown, and looked up                 waits for the look-up
ChannelDown         put back, uncounted                    the account waits
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Protocol

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.failures import (
    ChannelDown,
    ChatMoved,
    NotSent,
    OptedOut,
    OutcomeUnknown,
    RateLimited,
    Refused,
    SendFailed,
    Undeliverable,
)
from bullpen.channels.outgoing.parts import Parts
from bullpen.channels.outgoing.queue import chat_of
from bullpen.channels.platform import Note, Platform, Sending
from bullpen.core.answers.attachments import OpenFile, RefusedFile, open_response_files
from bullpen.core.channels.chats import find_chat, move_chat, set_opted_out, set_penalty
from bullpen.core.clock import SECOND
from bullpen.core.outbox.delivery import (
    Delivery,
    ack,
    begin_part,
    end_part,
    mark_undeliverable,
    mark_unknown,
    note_sending,
    reschedule,
)
from bullpen.core.outbox.parts import SendingPart
from bullpen.core.outbox.write import send_to_owner
from bullpen.core.store.transaction import Transaction

LOOK_UP_SECONDS = 60
"""How long a chat waits for the look-up of an unknown part, which ends the wait early."""


class Account(Protocol):
    """What a delivery tells the account."""

    def sent(self) -> None:
        """The platform took a part."""
        ...

    def trouble(self, error: Exception) -> int:
        """The platform does not answer, or refuses the account; returns until when to wait."""
        ...

    def hold(self, chat: str, until: int, response: int) -> None:
        """Send nothing to this chat before this response is looked up, or before this time."""
        ...

    def look_up(self) -> None:
        """There is a part with an unknown outcome."""
        ...


class Deliverer:
    """Sends the parts of responses."""

    def __init__(
        self,
        store: AsyncStore,
        platform: Platform,
        account: Account,
        store_id: str,
        log: logging.Logger,
    ) -> None:
        self._store = store
        self._platform = platform
        self._account = account
        self._store_id = store_id
        self._channel = platform.context.account
        self._log = log

    async def deliver(self, delivery: Delivery) -> int | None:
        """Send what is left of a response; returns until when its chat waits, or None."""
        token = delivery.claim_token
        assert token is not None
        try:
            parts = Parts.of(delivery, self._platform.fits, self._store_id)
            part = parts.next(delivery)
        except Exception as error:
            # Counted, so that a text without parts is not tried endlessly.
            self._log.exception("response %d cannot be split", delivery.id)
            text = f"{type(error).__name__} in the client"
            return await self._store.write(lambda tx: reschedule(tx, token, text))
        if part is None:
            await self._store.write(lambda tx: _finish(tx, token, delivery))
            return None
        try:
            parts, delivery = await self._begin(delivery, token, parts, part)
        except OptedOut as error:
            return await self._failed(delivery, token, error)
        while True:
            try:
                receipt = await self._send(parts, delivery, part)
            except (SendFailed, ChannelDown) as error:
                return await self._failed(delivery, token, error)
            self._account.sent()
            following = await self._end(token, parts, delivery, part, receipt)
            if following is None:
                return None
            delivery, part = following
            if self._platform.chat_interval:
                await asyncio.sleep(self._platform.chat_interval)

    async def _begin(
        self, delivery: Delivery, token: str, parts: Parts, part: SendingPart
    ) -> tuple[Parts, Delivery]:
        def work(tx: Transaction) -> tuple[Parts, Delivery]:
            chat = find_chat(tx, self._channel, chat_of(delivery))
            if chat is not None and chat.opted_out_at is not None:
                raise OptedOut("the person has asked for no more messages")
            until = None if chat is None else chat.window_until
            return replace(parts, window_until=until or 0), begin_part(tx, token, part)

        return await self._store.write(work)

    async def _end(
        self, token: str, parts: Parts, delivery: Delivery, part: SendingPart, receipt: str
    ) -> tuple[Delivery, SendingPart] | None:
        """Record the receipt, and begin the next part or end the delivery, in one transaction."""
        after = delivery.with_receipt(part.receipt(receipt))

        def work(tx: Transaction) -> tuple[Delivery, SendingPart] | None:
            end_part(tx, token, part.receipt(receipt))
            following = parts.next(after)
            if following is None:
                ack(tx, token)
                return None
            return begin_part(tx, token, following), following

        return await self._store.write(work)

    async def _send(self, parts: Parts, delivery: Delivery, part: SendingPart) -> str:
        """Send one part; every outcome but a receipt is an error of `failures`."""
        token = delivery.claim_token
        assert token is not None

        async def note(reference: str) -> None:
            await self._store.write(lambda tx: note_sending(tx, token, reference))

        async with self._opened(delivery, part) as file:
            refusal = str(file) if isinstance(file, RefusedFile) else ""
            began_at = self._store.now
            sending = parts.sending(
                delivery,
                part,
                began_at=began_at,
                file=file if isinstance(file, OpenFile) else None,
                refusal=refusal,
            )
            try:
                return await self._send_within(sending, note)
            except Undeliverable:
                raise
            except Refused as error:
                if sending.file is None:
                    raise
                refused = RefusedFile(sending.file.name, f"the platform refused it: {error}")
        sending = parts.sending(delivery, part, began_at=began_at, refusal=str(refused))
        return await self._send_within(sending, note)

    async def _send_within(self, sending: Sending, note: Note) -> str:
        try:
            async with asyncio.timeout(self._platform.send_seconds):
                return await self._platform.send(sending, note)
        except (SendFailed, ChannelDown):
            raise
        except TimeoutError as error:
            raise OutcomeUnknown("the platform did not answer in time") from error
        except Exception as error:
            self._log.exception("sending a part of %s failed", sending.key)
            raise OutcomeUnknown(f"{type(error).__name__} in the client") from error

    @asynccontextmanager
    async def _opened(
        self, delivery: Delivery, part: SendingPart
    ) -> AsyncIterator[OpenFile | RefusedFile | None]:
        """The file of a part, opened again at the moment of sending."""
        if part.file is None:
            yield None
            return
        with open_response_files(self._store.store, delivery) as files:
            file = files[part.file]
            limit = self._platform.context.info.limits.file_bytes
            if isinstance(file, OpenFile) and limit is not None and file.size > limit:
                size, most = file.size >> 20, limit >> 20
                yield RefusedFile(file.name, f"its size is {size} MB, the limit is {most} MB")
            else:
                yield file

    async def _failed(
        self, delivery: Delivery, token: str, error: SendFailed | ChannelDown
    ) -> int | None:
        """Record what a failed send means; returns until when the chat waits."""
        now = self._store.now
        text = str(error)
        match error:
            case RateLimited():
                until = now + int(error.seconds * SECOND)
                if error.account:
                    until = max(until, self._account.trouble(error))
            case NotSent() | ChannelDown():
                until = self._account.trouble(error)
            case ChatMoved():
                until = now
            case Refused():
                await self._store.write(lambda tx: self._refused(tx, delivery, token, error))
                self._log.warning("response %d cannot be delivered: %s", delivery.id, text)
                return None
            case _:
                self._account.trouble(error)
                # Before the commit, since the look-up that follows it ends the hold.
                until = now + LOOK_UP_SECONDS * SECOND
                self._account.hold(chat_of(delivery), until, delivery.id)
                await self._store.write(lambda tx: mark_unknown(tx, token, text))
                self._account.look_up()
                return None

        def put_back(tx: Transaction) -> None:
            wait = max(0, until - tx.now)
            reschedule(tx, token, text, retry_after=wait, counted=False)
            if isinstance(error, ChatMoved):
                move_chat(tx, self._channel, chat_of(delivery), error.to)
            elif wait:
                set_penalty(tx, self._channel, chat_of(delivery), until)

        await self._store.write(put_back)
        return until

    def _refused(self, tx: Transaction, delivery: Delivery, token: str, error: SendFailed) -> None:
        mark_undeliverable(tx, token, str(error))
        chat = find_chat(tx, self._channel, chat_of(delivery))
        if isinstance(error, OptedOut) and (chat is None or chat.opted_out_at is None):
            set_opted_out(tx, self._channel, chat_of(delivery), tx.now)
            send_to_owner(
                tx,
                f"{delivery.sender} on {self._channel} has asked for no more messages. "
                "Responses to them are not delivered.",
            )


def _finish(tx: Transaction, token: str, delivery: Delivery) -> None:
    """End a delivery without a part left."""
    if delivery.parts_sent:
        ack(tx, token)
    else:
        mark_undeliverable(tx, token, "the response has no text that can be shown")
