"""Socket Mode: two connections to Slack, of which one stays open while the other is renewed.

The SDK's client connects again forever, with the same address, also after the token was revoked.
Here a connection lives once, and this file decides what follows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import aiohttp
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from bullpen.channels.failures import ChannelDown, RateLimited, Refused, SendFailed
from bullpen.channels.platform import Intake
from bullpen.channels.slack.api import Object, as_object, as_text, ask
from bullpen.channels.slack.events import down_event, event_payload, to_time
from bullpen.core.clock import SECOND, Clock

CONNECTIONS = 2
SWEEP_SECONDS = 900.0
"""How often the history is read: a connection may answer pings and bring no events."""
PING_SECONDS = 20.0
"""A connection that answers no ping for half of this is closed."""
HELLO_SECONDS = 15.0
GRACE_SECONDS = 8.0
"""Slack announces the end of a connection about 10 s ahead; until then it accepts answers."""
CLOSE_SECONDS = 1.0
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
STEADY_MS = 30 * SECOND
"""A connection that lasted so long was no failure, and the next one is opened at once."""
SECOND_SECONDS = 0.5
"""How long the report of the first connection waits for the second one."""
ORDER_SECONDS = 0.005
MAX_FRAME_BYTES = 16 << 20

_DOWN = {
    "link_disabled": (
        "Socket Mode is disabled for the app",
        "Enable Socket Mode at https://api.slack.com/apps.",
    ),
    "too_many_websockets": (
        "the app has more than 10 connections",
        "Stop the other processes that use the app-level token, or create a new app.",
    ),
}


class Connection(SocketModeClient):
    """One connection, from its address to its end."""

    def __init__(
        self, app_token: str, web: AsyncWebClient, receive: Callable[[Connection, Object], None]
    ) -> None:
        """`receive` gets each envelope, in the order of their arrival."""
        super().__init__(
            app_token,
            logger=web.logger,
            web_client=web,
            auto_reconnect_enabled=False,
            ping_interval=PING_SECONDS,
        )
        self._receive = receive
        self._outbox: asyncio.Queue[tuple[str, ChannelDown | None]] = asyncio.Queue()
        self._sender: asyncio.Task[None] | None = None
        self.greeted = asyncio.Event()
        self.over = asyncio.Event()
        """Set when it ends, or is about to."""
        self.reason = "the connection was closed"
        self.down: ChannelDown | None = None
        self.total = 0
        """The connections of the app, as Slack counts them."""

    async def issue_new_wss_url(self) -> str:
        """A new address, which is valid once."""
        try:
            answer = await ask(self.web_client.apps_connections_open(app_token=self.app_token))
        except Refused as error:
            raise ChannelDown(
                error.code, f"Slack refuses the app-level token: {error}", CONNECTIONS_HINT
            ) from None
        except ChannelDown as error:
            reason = error.reason.replace("the token", "the app-level token", 1)
            raise ChannelDown(error.code, reason, CONNECTIONS_HINT) from None
        return as_text(answer.get("url"))

    async def connect(self) -> None:
        """Connect once, and wait for the greeting."""
        self.wss_uri = await self.issue_new_wss_url()
        async with asyncio.timeout(HELLO_SECONDS):
            self.current_session = await self.aiohttp_client_session.ws_connect(
                self.wss_uri,
                heartbeat=PING_SECONDS,
                proxy=self.proxy,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                max_msg_size=MAX_FRAME_BYTES,
            )
            self.message_receiver = asyncio.ensure_future(self.receive_messages())
            self._sender = asyncio.ensure_future(self._send_acks())
            waits = [asyncio.ensure_future(each.wait()) for each in (self.greeted, self.over)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in waits:
                    each.cancel()

    async def receive_messages(self) -> None:
        """Read until the connection ends."""
        session = self.current_session
        assert session is not None
        try:
            async for frame in session:
                if frame.type is aiohttp.WSMsgType.TEXT:
                    await self.enqueue_message(frame.data)
        finally:
            self.over.set()

    async def run_message_listeners(self, message: dict[str, object], raw_message: str) -> None:
        """Handle a frame. There is no pause before `receive`, so that the order is kept."""
        kind = message.get("type")
        if kind == "hello":
            total = message.get("num_connections")
            self.total = total if isinstance(total, int) else 0
            self.greeted.set()
        elif kind == "disconnect":
            self.reason = as_text(message.get("reason")) or "disconnect"
            if self.reason in _DOWN:
                self.down = ChannelDown(self.reason, *_DOWN[self.reason])
            self.over.set()
        elif message.get("envelope_id"):
            self._receive(self, message)

    async def connect_to_new_endpoint(self, force: bool = False) -> None:
        """Never connect again."""

    def acknowledge(self, envelope: str, then: ChannelDown | None) -> None:
        """Acknowledge an envelope; afterwards the account is down, if it announced that."""
        self._outbox.put_nowait((envelope, then))

    async def _send_acks(self) -> None:
        while True:
            envelope, then = await self._outbox.get()
            try:
                await self.send_socket_mode_response(SocketModeResponse(envelope_id=envelope))
            except (ConnectionError, aiohttp.ClientError):
                return  # Slack sends it again on another connection
            finally:
                self._outbox.task_done()
                if then is not None:
                    self.down = then
                    self.over.set()

    async def retire(self) -> None:
        """Leave the connection to Slack for the acknowledgements that are still to come."""
        if self.message_receiver is not None:
            await asyncio.wait({self.message_receiver}, timeout=GRACE_SECONDS)

    async def close(self) -> None:
        """End everything."""
        await super().close()  # type: ignore[no-untyped-call]
        tasks = [self.message_processor, self.message_receiver, self._sender]
        for task in filter(None, tasks):
            task.cancel()
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)


CONNECTIONS_HINT = (
    "Create an app-level token with the scope connections:write on the page Basic Information of "
    "the app, and set app_token."
)


@dataclass(slots=True)
class _Attempts:
    """The wait before the next connection."""

    chance: Callable[[], float]
    failed: int = 0

    def wait(self, lasted_ms: int) -> float:
        """The seconds to wait after a connection that lasted this long."""
        if lasted_ms >= STEADY_MS:
            self.failed = 0
            return 0.0
        self.failed += 1
        wait = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(self.failed - 1, 10))
        return wait * (0.5 + self.chance() / 2)


class SlackSocket:
    """The connections of one account."""

    def __init__(
        self,
        app_token: str,
        web: AsyncWebClient,
        clock: Clock,
        chance: Callable[[], float],
        log: logging.Logger,
    ) -> None:
        self._app_token, self._web = app_token, web
        self._clock, self._chance, self._log = clock, chance, log
        self._connections: set[Connection] = set()
        self._open: set[Connection] = set()
        self._retired: set[asyncio.Task[None]] = set()
        self._arrived: list[tuple[str, Connection, Object]] = []
        self._flushing: asyncio.TimerHandle | None = None
        self._announcing: asyncio.TimerHandle | None = None
        self._announced = False
        self.others = 0
        """Connections of other processes with the same token, as Slack last said."""

    async def receive(self, intake: Intake) -> None:
        """Receive until cancelled; raises `ChannelDown`."""
        keepers = {asyncio.create_task(self._keep(intake)) for _ in range(CONNECTIONS)}
        try:
            done: set[asyncio.Task[None]] = set()
            while not done:
                done, _ = await asyncio.wait(
                    keepers, timeout=SWEEP_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if self._announced and not done:
                    intake.connected(len(self._open))
            await done.pop()
        finally:
            for tasks in (keepers, self._retired):
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            self._cancel_announcement()
            if self._flushing is not None:
                self._flushing.cancel()
            # A task that was cancelled before its first step has closed nothing.
            await asyncio.gather(*(each.close() for each in set(self._connections)))

    async def _keep(self, intake: Intake) -> None:
        """Keep one connection open."""
        attempts = _Attempts(self._chance)
        while True:
            began = self._clock.monotonic()
            wait = 0.0
            connection = Connection(self._app_token, self._web, partial(self._take, intake))
            self._connections.add(connection)
            try:
                await connection.connect()
                if connection.greeted.is_set():
                    self._opened(connection, intake)
                await connection.over.wait()
            except RateLimited as error:
                wait = error.seconds
            except (SendFailed, OSError, aiohttp.ClientError, TimeoutError) as error:
                # The text of an error may have the address with its ticket.
                connection.reason = f"{type(error).__name__} while connecting"
            finally:
                self._ended(connection, intake)
                retired = asyncio.create_task(self._retire(connection))
                self._retired.add(retired)
                retired.add_done_callback(self._retired.discard)
            if connection.down is not None:
                raise connection.down
            wait = max(wait, attempts.wait(self._clock.monotonic() - began))
            self._log.info(
                "a connection to Slack ended (%s); next in %.1f s", connection.reason, wait
            )
            await asyncio.sleep(wait)

    def _opened(self, connection: Connection, intake: Intake) -> None:
        self._open.add(connection)
        others = connection.total - CONNECTIONS - len(self._retired)
        if others > 0 and self.others <= 0:
            self._log.warning(
                "%d other connections use the app-level token: another process gets a part of the "
                "messages",
                others,
            )
        self.others = max(0, others)
        intake.heard()
        if len(self._open) >= CONNECTIONS:
            self._announce(intake)
        elif self._announcing is None:
            loop = asyncio.get_running_loop()
            self._announcing = loop.call_later(SECOND_SECONDS, self._announce, intake)

    def _announce(self, intake: Intake) -> None:
        """Report the connections, once after there was none."""
        if not self._announced and self._open:
            self._announced = True
            intake.connected(len(self._open))

    def _ended(self, connection: Connection, intake: Intake) -> None:
        self._open.discard(connection)
        if self._open:
            return
        self._cancel_announcement()
        if self._announced:
            self._announced = False
            intake.disconnected(connection.reason)

    def _cancel_announcement(self) -> None:
        if self._announcing is not None:
            self._announcing.cancel()
            self._announcing = None

    async def _retire(self, connection: Connection) -> None:
        try:
            await connection.retire()
        finally:
            await connection.close()
            self._connections.discard(connection)

    def _take(self, intake: Intake, connection: Connection, envelope: Object) -> None:
        """Gather for a moment: the order of two connections is that of the events."""
        if not self._arrived:
            loop = asyncio.get_running_loop()
            self._flushing = loop.call_later(ORDER_SECONDS, self._flush, intake)
        event = as_object(as_object(envelope.get("payload")).get("event"))
        at = as_text(event.get("event_ts")) or to_time(self._clock.now())
        self._arrived.append((at, connection, envelope))

    def _flush(self, intake: Intake) -> None:
        arrived, self._arrived = self._arrived, []
        for _, connection, envelope in sorted(arrived, key=lambda each: each[0]):
            self._add(intake, connection, envelope)

    def _add(self, intake: Intake, connection: Connection, envelope: Object) -> None:
        body = as_object(envelope.get("payload"))
        payload = event_payload(as_text(envelope.get("type")), body, self._clock.now())
        taken = intake.add(payload)
        taken.add_done_callback(
            partial(
                _acknowledge, connection, as_text(envelope.get("envelope_id")), down_event(body)
            )
        )


def _acknowledge(
    connection: Connection, envelope: str, then: ChannelDown | None, taken: asyncio.Future[None]
) -> None:
    """Acknowledge what was stored; Slack sends the rest again."""
    if not taken.cancelled() and taken.exception() is None:
        connection.acknowledge(envelope, then)
