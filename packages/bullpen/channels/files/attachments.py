"""The attachments of a message: fetched after its author was authorised and the message stored.

The message waits in the queue with a delay, and its text says that the files are missing. When they
are there, the text is corrected and the delay ends. A process that is killed meanwhile fetches them
again at its next start. If that is too late, the delay ends anyway, and the message is processed
with the note.

Messages of a chat stay in order: while one waits for its files, later ones of the chat wait too.
"""

from __future__ import annotations

import asyncio
import logging
import mimetypes
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from bullpen.channels.files.fetching import (
    Fetched,
    FetchingClient,
    NotStored,
    NotTaken,
    Unreachable,
)
from bullpen.channels.files.unfetched import Sender as Sender
from bullpen.channels.files.unfetched import Unfetched, UnfetchedFiles
from bullpen.channels.inbound import Attachment
from bullpen.channels.platform import Download
from bullpen.core.clock import SECOND
from bullpen.core.errors import BullpenError, StoreError
from bullpen.core.ids import Ids
from bullpen.core.message import Answer
from bullpen.core.outbox.write import send_to_person
from bullpen.core.queue.attach import attach, release, waits
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import format_count, visible_line

Result = TypeVar("Result")

MAX_FILES = 10
"""The most files of one message."""
MAX_NAME_CHARS = 80
MAX_EXPECTED = 1_000
"""The most places with a message between its transaction and its fetch."""
MAX_AT_ONCE = 6
FETCH_SECONDS = 90.0
"""The time for one file, other attempts included."""
MESSAGE_SECONDS = 270.0
"""The time for all files of one message, waiting for those of others included."""
WAIT_MS = 300 * SECOND
"""The delay of a message with files, which ends earlier when they are there."""
RETRY_PAUSES = (1.0, 3.0, 10.0)
STORE_RETRY_SECONDS = 1.0
STOP_SECONDS = 3.0
NOT_IN_TIME = "it was not fetched in time"

_BRACKETS = str.maketrans("[]", "()")


class Writer(Protocol):
    """Runs transactions without blocking the loop."""

    async def write(self, work: Callable[[Transaction], Result]) -> Result:
        """Run this in a transaction that is committed."""
        ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a message is stored with."""

    text: str
    delay: int
    """In milliseconds."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file that was not accepted, and the reason."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} was not accepted: {self.reason}"


class Attachments:
    """Takes in the attachments of the messages of one account."""

    def __init__(
        self,
        client: FetchingClient,
        locate: Callable[[Attachment], Awaitable[Download]],
        store: Writer,
        ids: Ids,
        directory: Path,
        log: logging.Logger,
        *,
        fetch_seconds: float = FETCH_SECONDS,
        pauses: Sequence[float] = RETRY_PAUSES,
    ) -> None:
        self._client = client
        self._locate = locate
        self._store = store
        self._ids = ids
        self._kept = UnfetchedFiles(directory)
        self._log = log
        self._seconds = fetch_seconds
        self._pauses = pauses
        self._free = asyncio.Semaphore(MAX_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        # By place: the conversations that are released when the last of its files is there.
        self._waiting: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}
        # By place: until when a message with files may be between its transaction and `take_in`.
        self._expected: dict[str, float] = {}

    @property
    def busy(self) -> bool:
        """Whether files are being fetched."""
        return bool(self._tasks)

    def prepare(
        self, place: str, text: str, attachments: Sequence[Attachment], delay: int = 0
    ) -> Prepared:
        """The text and delay with which a message of this place is stored.

        Called in the transaction that stores it, in any thread. If the delay is not 0, `take_in`
        follows after the commit.
        """
        now = time.monotonic()
        if attachments:
            self._expect(place, now)
        elif place not in self._counts and self._expected.get(place, now) <= now:
            return Prepared(text, delay)
        return Prepared("\n\n".join(filter(None, (text, _missing(attachments)))), WAIT_MS)

    def _expect(self, place: str, now: float) -> None:
        """Expect `take_in` for a message of this place."""
        if len(self._expected) >= MAX_EXPECTED:
            self._expected = {each: at for each, at in [*self._expected.items()] if at > now}
        self._expected[place] = now + STOP_SECONDS

    def keep(
        self,
        place: str,
        conversation_id: str,
        attachments: Sequence[Attachment],
        sender: Sender,
        delay: int = 0,
    ) -> None:
        """Keep the arguments of `take_in` for the next start of the process.

        Called in the transaction that stores the message.
        """
        try:
            self._kept.save(Unfetched(place, conversation_id, (*attachments,), sender, delay))
        except OSError as error:
            self._log.warning("after a crash these files would not be fetched again: %s", error)

    async def resume(self) -> None:
        """Fetch what a killed process left unfetched; called once, when the platform answers."""
        for each in await asyncio.to_thread(self._kept.load):
            if await self._write(lambda tx, id_=each.conversation_id: waits(tx, id_)):  # type: ignore[misc]
                files = each.attachments
                self.take_in(each.place, each.conversation_id, files, each.sender, each.delay)
            else:
                self._kept.drop([each.conversation_id])

    def take_in(
        self,
        place: str,
        conversation_id: str,
        attachments: Sequence[Attachment],
        sender: Sender,
        delay: int = 0,
    ) -> None:
        """Fetch the files of a message that was stored, and end its wait.

        Called in the loop for each message whose `prepare` gave a delay; `delay` is the one that it
        has besides, in milliseconds.
        """
        self._counts[place] = self._counts.get(place, 0) + 1
        self._waiting.setdefault(place, []).append(conversation_id)
        work = self._take_in(place, conversation_id, attachments, sender, delay / SECOND)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("a message stays delayed, because %r", error)

    async def close(self) -> None:
        """Give what is being fetched a moment, then leave the rest to the delay."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take_in(
        self,
        place: str,
        conversation_id: str,
        attachments: Sequence[Attachment],
        sender: Sender,
        pause: float,
    ) -> None:
        ready_at = time.monotonic() + pause
        try:
            if attachments:
                await self._fetch_and_attach(conversation_id, attachments, sender)
            await asyncio.sleep(ready_at - time.monotonic())
        except Exception:
            self._log.exception("the attachments of a message were not accepted")
        finally:
            self._counts[place] -= 1
        if self._counts[place] == 0:
            del self._counts[place]
            done = self._waiting.pop(place)
            await self._write(lambda tx: release(tx, done))
            self._kept.drop(done)

    async def _fetch_and_attach(
        self, conversation_id: str, attachments: Sequence[Attachment], sender: Sender
    ) -> None:
        end = time.monotonic() + MESSAGE_SECONDS
        results = await asyncio.gather(*(self._take(each, end) for each in attachments[:MAX_FILES]))
        files = [str(each) for each in results if isinstance(each, Path)]
        refusals = [each for each in results if isinstance(each, Refusal)]
        refusals += _surplus(attachments)
        note = "\n".join(f"[attachment {each}]" for each in refusals)

        def work(tx: Transaction) -> bool:
            waited = attach(tx, conversation_id, _missing(attachments), note, files)
            if refusals:
                _tell(tx, sender, refusals)
            return waited

        if not await self._write(work) and files:
            self._log.warning("the files of %s came too late", conversation_id)

    async def _take(self, attachment: Attachment, end: float) -> Path | Refusal:
        """Fetch and store one file; whatever happens to it does not affect the others."""
        name = _shown(attachment.name)
        try:
            async with asyncio.timeout(end - time.monotonic()), self._free:
                async with asyncio.timeout(self._seconds):
                    fetched = await self._fetch(attachment)
            given = _with_suffix(attachment.name or "file", fetched.type)
            saved = await asyncio.to_thread(fetched.keep, self._ids, given)
            return saved.path
        except TimeoutError:
            reason = str(Unreachable("the platform took too long to send it"))
        except NotTaken as error:
            reason = str(error)
            if error.__cause__ is not None:
                self._log.error("an attachment was not stored: %s", error.__cause__)
        except StoreError as error:
            reason = str(NotStored(error))
            self._log.error("an attachment was not stored: %s", error)
        except Exception:
            self._log.exception("an attachment was not accepted")
            reason = "an error occurred; see the log of the channel"
        self._log.warning("an attachment was not accepted: %s", reason)
        return Refusal(name, reason)

    async def _fetch(self, attachment: Attachment) -> Fetched:
        """Fetch one file, again after a temporary failure."""
        for pause in self._pauses:
            try:
                return await self._fetch_once(attachment)
            except NotTaken as error:
                if not error.temporary:
                    raise
            await asyncio.sleep(pause)
        return await self._fetch_once(attachment)

    async def _fetch_once(self, attachment: Attachment) -> Fetched:
        if attachment.size is not None:
            self._client.check_size(attachment.size)
        try:
            source = await self._locate(attachment)
        except (OSError, TimeoutError):
            raise Unreachable("the platform did not answer") from None
        return await self._client.fetch(source, attachment.name, attachment.size)

    async def _write(self, work: Callable[[Transaction], Result]) -> Result | None:
        """Run a transaction until the store takes it."""
        while True:
            try:
                return await self._store.write(work)
            except StoreError as error:
                self._log.warning("files wait for the database: %s", error)
                await asyncio.sleep(STORE_RETRY_SECONDS)
            except BullpenError as error:
                # For example, the agent was removed meanwhile.
                self._log.warning("the files of a message were not attached: %s", error)
                return None


def _missing(attachments: Sequence[Attachment]) -> str:
    """The note about missing files."""
    missing = [Refusal(_shown(each.name), NOT_IN_TIME) for each in attachments[:MAX_FILES]]
    return "\n".join(f"[attachment {each}]" for each in (*missing, *_surplus(attachments)))


def _surplus(attachments: Sequence[Attachment]) -> list[Refusal]:
    """The refusal of the files over the limit."""
    more = len(attachments) - MAX_FILES
    if more <= 0:
        return []
    limit = f"a message can have at most {format_count(MAX_FILES, 'file')}"
    return [Refusal(f"the rest ({format_count(more, 'file')})", limit)]


def _tell(tx: Transaction, sender: Sender, refusals: Sequence[Refusal]) -> None:
    """Tell a person about files that were not accepted."""
    send_to_person(
        tx,
        Answer(message="\n".join(f"{each}." for each in refusals)),
        channel=sender.channel,
        sender=sender.name,
        sender_id=sender.id,
        reply_to=sender.reply_to,
    )


def _shown(name: str) -> str:
    """A name in one line that cannot be taken for a tag."""
    line = visible_line(name).translate(_BRACKETS)[:MAX_NAME_CHARS]
    return line or "a file"


def _with_suffix(name: str, type_: str) -> str:
    """A name that says the type of its file."""
    if Path(name).suffix:
        return name
    return f"{name}{mimetypes.guess_extension(type_) or ''}"
