"""The base client: everything of a channel that is not the platform's, in one event loop.

    platform ─► intake ─► incoming          stored in one transaction, then acknowledged
    store    ─► outgoing ─► delivering      part by part, each chat in order
                recovery                    parts with an unknown outcome
                catch_up                    what was written while nobody listened
                progress, health            what people see meanwhile

The client never ends because of the platform: an account that cannot work is in the state `down`,
with a reason, and is tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from bullpen.channels.async_store import AsyncStore, store_id
from bullpen.channels.catch_up import CatchUpReader, parse_feed
from bullpen.channels.failures import ChannelDown
from bullpen.channels.files.attachments import Attachments
from bullpen.channels.files.fetching import FetchingClient
from bullpen.channels.health import HealthReporter
from bullpen.channels.incoming.decide import Incoming, IntakeSettings
from bullpen.channels.incoming.follow_up import FollowUp
from bullpen.channels.incoming.queue import IntakeQueue
from bullpen.channels.outgoing.delivering import Deliverer
from bullpen.channels.outgoing.queue import Outgoing
from bullpen.channels.outgoing.recovery import Recovery
from bullpen.channels.pauses import Pauses
from bullpen.channels.platform import CatchUp, ChannelContext, Platform
from bullpen.channels.progress import ProgressDisplay
from bullpen.channels.watchdog import Silent, Watchdog
from bullpen.core.background import ended_workers
from bullpen.core.channels.health import ChannelState
from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.outbox.delivery import Delivery, reschedule_chat
from bullpen.core.outbox.leases import expire_leases
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction

START_SECONDS = 60.0
FIRST_CATCH_UP_SECONDS = 15.0
"""How long the first catch-up may delay live messages, so that older ones come first."""
DOWN_SECONDS = (60.0, 300.0, 1800.0)
"""The pauses before an account that is down is tried again."""
MAX_TROUBLE_SECONDS = 60.0
STOP_SECONDS = 8.0


class Client:
    """Serves one account, from `run` until `stop`."""

    def __init__(
        self,
        store: Store,
        make_platform: Callable[[ChannelContext], Platform],
        context: ChannelContext,
        settings: IntakeSettings,
        worker: Callable[[], str],
    ) -> None:
        self._database = store
        self._make_platform = make_platform
        self._context = context
        self._settings = settings
        self._worker = worker
        self._log = context.log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._stop_asked = False
        self._trouble = 0
        self._blocked_until = 0
        self._serving = False
        self._files_resumed = False
        self._fault: asyncio.Future[None] | None = None

    def run(self) -> None:
        """Serve the account in this thread until `stop` is called."""
        asyncio.run(self._main())

    def stop(self) -> None:
        """Stop soon. May be called in any thread, more than once."""
        self._stop_asked = True
        self._call(self._stopping.set)

    def wake(self) -> None:
        """There may be responses to send, or the channel was paused. From any thread."""
        self._call(self._woken)

    def retry(self) -> None:
        """Try at once an account that is down. From any thread."""
        self._call(lambda: self._pauses.retry())

    def _call(self, callback: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(callback)

    def _woken(self) -> None:
        self._outgoing.wake()
        self._recovery.wake()
        self._pauses.wake()

    async def _main(self) -> None:
        settings = self._database.settings
        async with FetchingClient(settings, limit=self._settings.file_bytes) as self._fetching:
            await self._run_parts()

    async def _run_parts(self) -> None:
        self._make_parts()
        self._loop = asyncio.get_running_loop()
        if self._stop_asked:
            self._stopping.set()
        tasks = [
            asyncio.create_task(each, name=name)
            for name, each in (
                ("intake", self._intake.run()),
                ("outgoing", self._outgoing.run()),
                ("recovery", self._recovery.run()),
                ("catch-up", self._catch_up.run()),
                ("progress", self._progress.run()),
                ("health", self._health.run()),
                ("watchdog", self._watchdog.run()),
                ("account", self._serve()),
            )
        ]
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            done, _ = await asyncio.wait([*tasks, stopping], return_when=asyncio.FIRST_COMPLETED)
            # Progress ends at once where the platform shows none.
            while done and stopping not in done and all(map(_ended_well, done)):
                rest = [each for each in tasks if not each.done()]
                done, _ = await asyncio.wait([*rest, stopping], return_when=asyncio.FIRST_COMPLETED)
            for each in done - {stopping}:
                each.result()
        finally:
            await self._end([*tasks, stopping])

    def _make_parts(self) -> None:
        context, log = self._context, self._log
        self._store = AsyncStore(self._database)
        id_ = store_id(self._database)
        self._platform = platform = self._make_platform(context)
        receiving = self._receiving = asyncio.Event()
        self._files = Attachments(
            self._fetching,
            platform.locate,
            self._store,
            self._database.ids,
            context.directory / "unfetched",
            log,
        )
        window = int((platform.window_seconds or 0) * SECOND)
        self._incoming = Incoming(
            context.account,
            id_,
            replace(self._settings, window_ms=window),
            self._files,
            has_buttons=platform.has_buttons,
            command_prefix=platform.command_prefix,
        )
        self._health = HealthReporter(
            self._store,
            context.account,
            self._worker,
            self._connected,
            self._incoming.flush,
            log,
        )
        self._pauses = Pauses(self._health)
        self._deliverer = Deliverer(self._store, platform, self, id_, log)
        self._outgoing = Outgoing(
            self._store,
            context.account,
            self._worker,
            self._deliverer.deliver,
            self._put_back,
            log,
            chat_interval=platform.chat_interval,
        )
        self._progress = ProgressDisplay(self._store, platform, receiving, log)
        self._follow_up = FollowUp(
            self._store, platform, self._health, self._outgoing, self._progress, self._files
        )
        self._intake = IntakeQueue(
            self._store,
            platform.parse if platform.catch_up is not CatchUp.FEED else parse_feed(platform),
            self._incoming,
            self._health,
            self._follow_up.taken,
            log,
            poll=lambda: self._catch_up.poll(),
            reorders=platform.reorders,
            catches_up=platform.catch_up is CatchUp.CHATS,
        )
        self._recovery = Recovery(self._store, platform, self._outgoing, self._worker, id_, log)
        self._catch_up = CatchUpReader(self._store, platform, self._intake, receiving, log)
        self._watchdog = Watchdog(
            self._store,
            platform,
            self._health,
            lambda: self._intake.last_payload_at,
            self._catch_up,
            self._reconnect,
            log,
        )

    async def _serve(self) -> None:
        """Start the account and receive, again and again, whatever happens to the platform."""
        failures = 0
        while True:
            await self._pauses.until_none()
            self._health.set(ChannelState.STARTING)
            began = self._store.now
            try:
                async with asyncio.timeout(START_SECONDS):
                    identity = await self._platform.start()
                name = f"{identity.name} {identity.id}".strip()
                self._log.info("%s is %s", self._context.account, name)
                await self._resume_files()
                await self._receive()
                failures = 0
                continue
            except ChannelDown as error:
                if self._health.connected_at >= began:
                    failures = 0
                self._health.down(error)
                wait = error.retry_seconds or DOWN_SECONDS[min(failures, len(DOWN_SECONDS) - 1)]
            except asyncio.CancelledError:
                raise
            except Exception as error:
                if not isinstance(error, (OSError, TimeoutError)):
                    self._log.exception("%s failed", self._context.account)
                code = "silent" if isinstance(error, Silent) else "disconnected"
                self._health.disconnected(f"{type(error).__name__}: {error}", code)
                if self._store.now - began > MINUTE:
                    failures = 0
                wait = min(MAX_TROUBLE_SECONDS, 2.0**failures)
            failures += 1
            if await self._pauses.wait_to_retry(wait):
                failures = 0

    async def _resume_files(self) -> None:
        """Fetch the files that a killed client left, once."""
        if not self._files_resumed:
            self._files_resumed = True
            await self._files.resume()

    async def _receive(self) -> None:
        """Receive and send, until the platform fails or the channel is paused."""
        loop = asyncio.get_running_loop()
        self._fault = loop.create_future()
        try:
            await self._store.write(self._take_over)
            await self._outgoing.restore_holds()
            self._intake.begin_gap()
            await self._catch_up_first()
            self._serving = True
            self._receiving.set()
            self._open()
            receiving = asyncio.create_task(self._platform.receive(self._intake))
            paused = asyncio.create_task(self._pauses.until_one())
            try:
                await asyncio.wait(
                    [receiving, paused, self._fault], return_when=asyncio.FIRST_COMPLETED
                )
                for each in (receiving, self._fault):
                    if each.done():
                        each.result()
                if not paused.done():
                    raise ConnectionError("the platform ended the connection")
            finally:
                for task in (receiving, paused):
                    task.cancel()
                await asyncio.gather(receiving, paused, return_exceptions=True)
        finally:
            self._serving = False
            self._receiving.clear()
            await self._outgoing.stop()
            if not self._fault.done():
                self._fault.cancel()

    def _take_over(self, tx: Transaction) -> None:
        """End the leases of a client that was killed, so that nothing waits for them."""
        account = self._context.account
        expire_leases(tx, account, ended_workers(tx, account))

    async def _catch_up_first(self) -> None:
        """Store missed messages before live ones, as far as that is quick."""
        try:
            async with asyncio.timeout(FIRST_CATCH_UP_SECONDS):
                await self._catch_up.catch_up()
        except ChannelDown:
            raise
        except TimeoutError:
            self._catch_up.wake()
        except Exception as error:
            self._log.warning("the first catch-up failed: %r", error)

    def _open(self) -> None:
        """Send, unless the account has to wait."""
        if not self._serving:
            return
        wait = (self._blocked_until - self._store.now) / SECOND
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._open)
        else:
            self._outgoing.open.set()
            self._outgoing.wake()
            self._recovery.wake()

    # What a delivery tells the account.

    def sent(self) -> None:
        """The platform took a part. After a time without an answer, messages may be missing."""
        if self._trouble:
            self._catch_up.wake()
        self._trouble = 0
        self._health.part_sent()

    def trouble(self, error: Exception) -> int:
        """Send nothing for a while, longer each time; returns until when."""
        now = self._store.now
        if isinstance(error, ChannelDown):
            self._reconnect(error)
        wait = min(MAX_TROUBLE_SECONDS, 2.0 ** min(self._trouble, 10)) * SECOND
        self._trouble += 1
        self._blocked_until = max(self._blocked_until, now + int(wait))
        if self._outgoing.open.is_set():
            self._outgoing.open.clear()
            self._open()
        return self._blocked_until

    def _reconnect(self, error: Exception) -> None:
        """End the connection because of this error, and connect again."""
        if self._fault is not None and not self._fault.done():
            self._fault.set_exception(error)

    def hold(self, chat: str, until: int, response: int) -> None:
        """Send nothing to this chat before this response is looked up, or before this time."""
        self._outgoing.hold(chat, until, look_up=response)

    def _connected(self, again: bool) -> None:
        """The platform reaches the client, again or for a further time."""
        if again:
            self._catch_up.reconnected()
        else:
            self._catch_up.wake()

    def look_up(self) -> None:
        """There is a part with an unknown outcome."""
        self._recovery.wake()

    async def _put_back(self, deliveries: list[Delivery], until: int) -> None:
        tokens = [each.claim_token for each in deliveries if each.claim_token is not None]
        wait = max(0, until - self._store.now)
        await self._store.write(
            lambda tx: reschedule_chat(tx, tokens, "waits for its chat", retry_after=wait)
        )

    async def _end(self, tasks: list[asyncio.Task[Any]]) -> None:
        """Finish what is being sent and stored, then close everything."""
        await self._outgoing.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._follow_up.close()
        self._health.set(ChannelState.STOPPED)
        for closing in (
            self._intake.drain(),
            self._files.close(),
            self._platform.close(),
            self._health.report(),
        ):
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await closing
            except Exception as error:
                self._log.warning("the end of %s: %r", self._context.account, error)
        self._loop = None
        self._store.close()


def _ended_well(task: asyncio.Task[Any]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
