"""Updates of Telegram: a queue that the bot polls, or that is posted to its webhook.

An update stays until its taking is confirmed: by a later offset, or by the webhook's answer.
"""

from __future__ import annotations

import asyncio
from typing import Unpack

import aiohttp

from tests.channels.fakes.base import Options
from tests.channels.fakes.telegram.chats import Chats
from tests.channels.fakes.telegram.wire import Failed, Object

POLL_RETRY_SECONDS = 0.2
NO_MESSAGE = -1


class Updates(Chats):
    """The updates of one bot."""

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.webhook = ""
        self.webhook_error = ""
        self.webhook_secret = ""
        self.webhook_answers: list[int] = []
        self.allowed: set[str] = set()
        """The kinds of updates that the bot last asked for; empty is all."""
        self.conflict = ""
        self.confirmed: list[int] = []
        """The messages of the updates that were confirmed."""
        self._updates: list[tuple[int, Object]] = []
        self._by_message: dict[str, Object] = {}
        self._next_update = 500_000_000
        self._poll = 0
        self._last_poll: tuple[int, float] = (-1, -100.0)
        self._pulse = asyncio.Event()
        self._pusher: asyncio.Task[None] | None = None

    def recall(self, record: dict[str, object]) -> None:
        number, update = record.get("id"), record.get("update")
        if isinstance(update, dict) and isinstance(number, int):
            self._updates.append((number, update))
            self._by_message.setdefault(_message_key(update), update)
            self._next_update = max(self._next_update, number + 1)
            self._next_message = max(self._next_message, _message_id(update) + 1)
        elif isinstance(below := record.get("confirmed"), int):
            self._updates = [each for each in self._updates if each[0] >= below]
        else:
            super().recall(record)

    def push(self, update: Object) -> int:
        """Queue an update; returns its id."""
        with self._lock:
            number = self._next_update
            self._next_update += 1
            if self.allowed and not self.allowed & set(update):
                return number  # nobody has asked for this kind
            update = {"update_id": number, **update}
            for each in range(self.copies("update")):
                self._queue(number + each, {**update, "update_id": number + each})
                self._next_update = number + each + 1
        self._wake()
        return number

    def redeliver(self, message: str) -> None:
        """Queue the update of a message again, as after a lost confirmation."""
        with self._lock:
            found = [
                {name: value for name, value in update.items() if name != "update_id"}
                for key, update in self._by_message.items()
                if key.endswith(f":{message}") and not key.startswith("update:")
            ]
        for each in found:
            self.push(each)

    def unacked(self) -> list[int]:
        """The ids of the messages and the like whose updates are not confirmed."""
        with self._lock:
            return [_message_id(update) for _, update in self._updates]

    def other_poller(self, on: bool = True) -> None:
        """Another process polls this bot all the time."""
        text = "terminated by other getUpdates request; make sure that only one bot instance is"
        self.conflict = f"Conflict: {text} running" if on else ""
        self._wake()

    def drop_connections(self) -> None:
        """Cut all connections."""
        self._loop.call_soon_threadsafe(self._cut)

    def _queue(self, number: int, update: Object) -> None:
        self._updates.append((number, update))
        self._by_message.setdefault(_message_key(update), update)
        self.remember({"id": number, "update": update})

    def _batch(self, limit: int) -> list[Object]:
        with self._lock:
            return [update for _, update in self._updates[:limit]]

    def _confirm(self, below: int) -> None:
        """Forget the updates below an offset."""
        with self._lock:
            done = [each for each in self._updates if each[0] < below]
            if not done:
                return
            self._updates = self._updates[len(done) :]
            self.confirmed += [_message_id(update) for _, update in done]
        self.remember({"confirmed": below})
        self.changed()

    async def _wait(self, limit: int, end: float) -> list[Object]:
        self._poll += 1
        mine = self._poll
        self._wake_now()
        while not (batch := self._batch(limit)) and not self.conflict:
            left = end - self._loop.time()
            if left <= 0 or self.faults.released.is_set():
                break
            try:
                async with asyncio.timeout(left):
                    await self._pulse.wait()
            except TimeoutError:
                break
            if mine != self._poll:
                raise Failed(
                    409,
                    "Conflict: terminated by other getUpdates request; make sure that only one "
                    "bot instance is running",
                )
            if self.webhook:
                raise Failed(409, "Conflict: terminated by setWebhook request")
        return batch

    def _wake(self) -> None:
        self._loop.call_soon_threadsafe(self._wake_now)

    def _wake_now(self) -> None:
        pulse, self._pulse = self._pulse, asyncio.Event()
        pulse.set()

    async def _push_updates(self) -> None:
        """Post the updates to the webhook, one after the other, until each was taken."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
            while True:
                pulse = self._pulse
                batch = self._batch(1)
                if not batch or not self.webhook:
                    await pulse.wait()
                    continue
                number = batch[0]["update_id"]
                assert isinstance(number, int)
                headers = {"X-Telegram-Bot-Api-Secret-Token": self.webhook_secret}
                try:
                    async with session.post(self.webhook, json=batch[0], headers=headers) as answer:
                        status = answer.status
                except (OSError, aiohttp.ClientError, TimeoutError) as error:
                    self.webhook_error = f"Connection failed: {type(error).__name__}"
                    status = 0
                self.webhook_answers.append(status)
                if 200 <= status < 300:
                    self._confirm(number + 1)
                    continue
                if status:
                    self.webhook_error = f"Wrong response from the webhook: {status}"
                await asyncio.sleep(POLL_RETRY_SECONDS)


def _message_key(update: Object) -> str:
    """The chat and id of a new message; a name of its own for anything else."""
    message, chat = update.get("message"), _chat_of(update)
    if isinstance(message, dict) and isinstance(chat, dict) and "id" in chat:
        return f"{chat['id']}:{message['message_id']}"
    return f"update:{update['update_id']}"


def _message_id(update: Object) -> int:
    message = update.get("message")
    number = message.get("message_id") if isinstance(message, dict) else None
    return number if isinstance(number, int) else NO_MESSAGE


def _chat_of(update: Object) -> object:
    message = update.get("message")
    return message.get("chat") if isinstance(message, dict) else None
