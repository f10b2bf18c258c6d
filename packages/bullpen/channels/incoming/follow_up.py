"""Follow-up: what happens after the commit of something that was taken in.

Progress is shown, files are fetched, names are looked up, and a service is restarted. None of it
holds up the messages that follow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.files.attachments import Attachments, Sender
from bullpen.channels.health import HealthReporter
from bullpen.channels.inbound import Attachment
from bullpen.channels.incoming.commands import restart
from bullpen.channels.outgoing.queue import Outgoing
from bullpen.channels.platform import Address, Platform
from bullpen.channels.progress import ProgressDisplay
from bullpen.core.channels.senders import see_sender
from bullpen.core.message import SEPARATOR, Accepted, Answer, ReplyTo
from bullpen.core.outbox.write import send_to_person


@dataclass(frozen=True, slots=True)
class Taken:
    """What was stored, for what follows after the commit."""

    accepted: tuple[Accepted, ...] = ()
    to: Address = field(default_factory=lambda: Address(chat=""))
    sender: Sender | None = None
    """The sender of a message that waits for its files, or for those of another one."""
    attachments: tuple[Attachment, ...] = ()
    delay: int = 0
    person: str = ""
    """The id of a person whose name is not known."""
    asked: str = ""
    """The same of an unpaired person who got a code. Nothing else of theirs was stored."""
    restart: str = ""
    proved: int = 0
    """The response whose part the platform confirmed."""


NOTHING = Taken()


class FollowUp:
    """Does for one account what could not wait in the store."""

    def __init__(
        self,
        store: AsyncStore,
        platform: Platform,
        health: HealthReporter,
        outgoing: Outgoing,
        progress: ProgressDisplay,
        files: Attachments,
    ) -> None:
        self._store = store
        self._platform = platform
        self._health = health
        self._outgoing = outgoing
        self._progress = progress
        self._files = files
        self._account = platform.context.account
        self._log = platform.context.log
        self._tasks: set[asyncio.Task[Any]] = set()

    def taken(self, taken: Taken) -> None:
        """Something was stored."""
        if taken.proved:
            self._outgoing.settle(taken.proved)
            return
        if taken.asked:
            self._follow(self._learn_name(taken.asked))  # the owner decides
            return
        self._health.message_taken()
        for each in taken.accepted:
            if each.fresh:
                self._progress.track(each.message_id, taken.to)
        if taken.sender is not None:
            place = SEPARATOR.join((taken.to.chat, taken.to.thread))
            conversation = taken.accepted[0].message_id
            self._files.take_in(place, conversation, taken.attachments, taken.sender, taken.delay)
        if taken.person:
            self._follow(self._learn_name(taken.person))
        if taken.restart:
            self._follow(self._restart(taken.restart, taken.to))

    async def close(self) -> None:
        """End what still runs."""
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _restart(self, service: str, to: Address) -> None:
        """Restart a service, and report the result where the command was written."""
        text = await asyncio.to_thread(restart, self._store.store.settings, service)
        await self._store.write(
            lambda tx: send_to_person(
                tx,
                Answer(message=text),
                channel=self._account,
                sender=to.person,
                sender_id=to.person,
                reply_to=str(ReplyTo(to.chat, to.thread, to.message)),
            )
        )

    async def _learn_name(self, person: str) -> None:
        """Look up the name of a person once, for their next messages."""
        try:
            async with asyncio.timeout(self._platform.send_seconds):
                name = await self._platform.person_name(person)
        except Exception as error:
            self._log.info("the name of a person is not known: %r", error)
            return
        if name:
            await self._store.write(lambda tx: see_sender(tx, self._account, person, name))

    def _follow(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
