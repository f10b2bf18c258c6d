"""Events of Slack on their way to the app, by Socket Mode or by HTTP, until it acknowledges them.

An event that is not acknowledged is sent again, three times; after that it is lost, as on Slack.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import json
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Unpack

import aiohttp
from aiohttp import WSMsgType, web

from tests.channels.fakes.base import Options
from tests.channels.fakes.slack.blocks import Json
from tests.channels.fakes.slack.workspace import APP, BOT_USER, SIGNING_SECRET, TEAM, Workspace

ACK_SECONDS = 3.0
RETRY_SECONDS = (0.1, 0.5, 1.0)
"""In place of Slack's at once, 1 min and 5 min."""
MAX_CONNECTIONS = 10


@dataclass(slots=True)
class Delivery:
    """An event on its way to the app."""

    envelope: str
    kind: str
    body: Json
    name: str
    attempts: int = 0
    acked: asyncio.Event = field(default_factory=asyncio.Event)
    lost: bool = False


class Events(Workspace):
    """The Events API of a workspace."""

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.deliveries: list[Delivery] = []
        self.extra_connections = 0
        self.dropping = False
        """Whether events are lost at once, as after an outage of more than six minutes."""
        self.hook = ""
        """The URL for HTTP events; empty for Socket Mode."""
        self.keep_greeting = False
        """Whether connections get no `hello`."""
        self._sockets: list[web.WebSocketResponse] = []
        self._tickets: set[str] = set()
        self._turn = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()

    def redeliver(self, message: str) -> None:
        """Send every event of a message again, under its own id and under a new one."""
        for each in list(self.deliveries):
            event = each.body.get("event")
            if isinstance(event, dict) and message in (event.get("ts"), event.get("message_ts")):
                self._call(lambda each=each: self._begin(each))  # type: ignore[misc]
                self.push_event(each.name, event)

    def unacked(self) -> list[str]:
        """The names of events that the app has not acknowledged."""
        return [each.name for each in self.deliveries if not each.acked.is_set()]

    def is_acked(self, message: str) -> bool:
        """Whether all events of a message were acknowledged."""
        events = [(each, each.body.get("event")) for each in list(self.deliveries)]
        mine = [
            each for each, event in events if isinstance(event, dict) and event.get("ts") == message
        ]
        return bool(mine) and all(each.acked.is_set() for each in mine)

    def connections(self) -> int:
        """The open connections of Socket Mode."""
        return len(self._sockets)

    def drop_connections(self) -> None:
        """Cut all connections of Socket Mode."""
        self.run(self._drop())

    def disconnect(self, reason: str = "warning", count: int = 1) -> None:
        """Announce the end of connections, the oldest first."""
        self.run(self._disconnect(reason, count))

    def push_event(self, name: str, event: Json) -> None:
        """Push an event; each push has an id of its own."""
        body: Json = {
            "token": "verification",
            "team_id": TEAM,
            "api_app_id": APP,
            "event": {"type": name, **event},
            "type": "event_callback",
            "event_id": f"Ev{uuid.uuid4().hex[:10].upper()}",
            "event_time": int(time.time()),
            "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True}],
        }
        self.push("events_api", body, name)

    def push(self, kind: str, body: Json, name: str) -> None:
        """Push a payload until it is acknowledged, or lost."""
        for _ in range(self.copies(name)):
            delivery = Delivery(str(uuid.uuid4()), kind, body, name)
            self.deliveries.append(delivery)
            self._call(lambda delivery=delivery: self._begin(delivery))  # type: ignore[misc]

    def _call(self, work: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(work)

    def _begin(self, delivery: Delivery) -> None:
        task = self._loop.create_task(self._deliver(delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, delivery: Delivery) -> None:
        delivery.acked.clear()
        for wait in (0.0, *RETRY_SECONDS):
            if self.dropping:
                break
            await asyncio.sleep(wait)
            with suppress(ConnectionError, aiohttp.ClientError, TimeoutError):
                await (self._post_event(delivery) if self.hook else self._send(delivery))
                if delivery.acked.is_set() or (not self.hook and await self._acked(delivery)):
                    self.changed()
                    return
            delivery.attempts += 1
            if delivery.kind != "events_api":
                break  # Slack tells the person that it failed
        delivery.lost = True
        self.changed()

    async def _acked(self, delivery: Delivery) -> bool:
        try:
            async with asyncio.timeout(ACK_SECONDS):
                await delivery.acked.wait()
        except TimeoutError:
            return False
        self.changed()
        return True

    async def _send(self, delivery: Delivery) -> None:
        if not self._sockets:
            raise ConnectionError
        socket = self._sockets[next(self._turn) % len(self._sockets)]
        envelope: Json = {
            "envelope_id": delivery.envelope,
            "type": delivery.kind,
            "payload": delivery.body,
            "accepts_response_payload": delivery.kind != "events_api",
        }
        if delivery.kind == "events_api":
            envelope |= {"retry_attempt": delivery.attempts, "retry_reason": ""}
        self.note(f"/sent/{delivery.kind}", json.dumps(envelope))
        await socket.send_json(envelope)

    async def _post_event(self, delivery: Delivery) -> None:
        body, kind = json.dumps(delivery.body), "application/json"
        if delivery.kind != "events_api":
            fields = delivery.body if delivery.kind == "slash_commands" else {"payload": body}
            form = aiohttp.FormData([(key, str(value)) for key, value in fields.items()])()
            body, kind = form._value.decode(), "application/x-www-form-urlencoded"
        headers = sign(body) | {"Content-Type": kind}
        if delivery.attempts:
            headers |= {"X-Slack-Retry-Num": str(delivery.attempts), "X-Slack-Retry-Reason": "x"}
        timeout = aiohttp.ClientTimeout(total=ACK_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(self.hook, data=body, headers=headers) as answer,
        ):
            if answer.status == 200:
                delivery.acked.set()

    async def _drop(self) -> None:
        for socket in list(self._sockets):
            self._sockets.remove(socket)
            if (writer := socket._writer) is not None and writer.transport is not None:
                writer.transport.abort()

    async def _disconnect(self, reason: str, count: int) -> None:
        for socket in self._sockets[:count]:
            self._sockets.remove(socket)
            await socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {}})

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            raise web.HTTPForbidden
        self._tickets.remove(ticket)
        socket = web.WebSocketResponse(heartbeat=30)
        await socket.prepare(request)
        count = len(self._sockets) + 1 + self.extra_connections
        if count > MAX_CONNECTIONS:
            await socket.send_json({"type": "disconnect", "reason": "too_many_websockets"})
            return socket
        if not self.keep_greeting:
            hello = {"type": "hello", "num_connections": count, "connection_info": {"app_id": APP}}
            await socket.send_json(hello)
        self._sockets.append(socket)
        self.changed()
        try:
            async for frame in socket:
                if frame.type is WSMsgType.TEXT:
                    self._ack(json.loads(frame.data))
        finally:
            if socket in self._sockets:
                self._sockets.remove(socket)
            self.changed()
        return socket

    def _ack(self, frame: Json) -> None:
        self.note("/acked", json.dumps(frame))
        for each in self.deliveries:
            if each.envelope == frame.get("envelope_id"):
                each.acked.set()
        self.changed()


def sign(body: str, *, secret: str = SIGNING_SECRET, at: float | None = None) -> dict[str, str]:
    """The headers of a signed request."""
    stamp = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}
