"""The gateway of Discord: WebSockets with sessions that can be resumed, and their events."""

from __future__ import annotations

import contextlib
import json
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, Unpack

import zstandard
from aiohttp import WSMsgType, web
from aiohttp.web_protocol import RequestHandler

from tests.channels.fakes.base import Options
from tests.channels.fakes.discord.chats import APPLICATION, ME, SERVER, Chats, Json
from tests.channels.fakes.faults import cut

MESSAGE_CONTENT = 1 << 15
GUILD_MESSAGES = 1 << 9
DIRECT_MESSAGES = 1 << 12
CONTENT_FLAG = 1 << 19

Compress: TypeAlias = Callable[[bytes], bytes]


def _zlib() -> Compress:
    stream = zlib.compressobj()
    return lambda data: stream.compress(data) + stream.flush(zlib.Z_SYNC_FLUSH)


def _zstd() -> Compress:
    stream = zstandard.ZstdCompressor().compressobj()
    return lambda data: stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


COMPRESSIONS: Mapping[str, Callable[[], Compress]] = {"zlib-stream": _zlib, "zstd-stream": _zstd}
"""The SDK asks for zstd where the package zstandard is installed, as it is beside Spark Connect."""


@dataclass
class Session:
    """A session of the gateway, with the events that were sent in it."""

    id: str
    intents: int
    events: list[Json] = field(default_factory=list)
    socket: web.WebSocketResponse | None = None
    compress: Compress | None = None
    connection: RequestHandler | None = None
    expired: bool = False

    async def push(self, event: Json) -> None:
        """Send an event if the session is connected."""
        self.events.append(event)
        await self.send(event)

    async def send(self, frame: Json) -> None:
        """Send one frame."""
        if self.socket is None or self.socket.closed or self.compress is None:
            return
        with contextlib.suppress(ConnectionError):
            await self.socket.send_bytes(self.compress(json.dumps(frame).encode()))


class Gateway(Chats):
    """The sessions of a bot."""

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.flags = CONTENT_FLAG
        """Of the application: whether it may ask for the content of messages."""
        self.content_allowed = True
        """What the gateway says about that, whatever the flags say."""
        self.servers = [SERVER]
        """The servers that the bot is in; its channels stay."""
        self.sessions: dict[str, Session] = {}
        self.sessions_left = 1_000
        self.identified: list[float] = []
        self.invalidate_all = False
        """Whether each new session is refused at once."""
        self.rewound = False
        self._sequence = 0

    @property
    def connections(self) -> int:
        """How many connections to the gateway are open, with a session."""
        return sum(
            1
            for each in self.sessions.values()
            if each.socket is not None and not each.socket.closed
        )

    def sessions_begun(self) -> int:
        """How many sessions were begun."""
        return len(self.identified)

    def drop_connections(self) -> None:
        """Reset the connections to the gateway; sessions stay."""
        self.run(self._drop())

    def ask_to_reconnect(self) -> None:
        """Ask for a new connection, as Discord does every few hours."""
        self.run(self._send_all({"op": 7, "d": None}))

    def invalidate(self, *, resumable: bool) -> None:
        """End the sessions."""
        if not resumable:
            self.expire_sessions()
        self.run(self._send_all({"op": 9, "d": resumable}))

    def expire_sessions(self) -> None:
        """Forget the sessions, as Discord does after some minutes without a connection."""
        for each in self.sessions.values():
            each.expired = True

    def close_gateway(self, code: int) -> None:
        """Close the connections to the gateway with a code."""
        self.run(self._close_all(code))

    def rewind(self) -> None:
        """Let a resumed session send all its events again, as if none had been received."""
        self.rewound = True

    def push(self, event: str, data: Json) -> None:
        """Push any event."""
        self.run(self._dispatch(event, data))

    async def _serve_gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        compress = COMPRESSIONS[request.query["compress"]]()
        session = Session("", 0, [], socket, compress, request.protocol)
        await session.send({"op": 10, "d": {"heartbeat_interval": 41_250}})
        async for frame in socket:
            if frame.type is not WSMsgType.TEXT:
                break
            data = json.loads(frame.data)
            self.note(f"/gateway/op{data['op']}", frame.data)
            if data["op"] == 1:
                await session.send({"op": 11})
            elif data["op"] == 2:
                session = await self._identify(session, data["d"])
            elif data["op"] == 6:
                session = await self._resume(session, data["d"])
        if socket.close_code in (1000, 1001) and session.id:
            session.expired = True
        if session.socket is socket:
            session.socket = None
        self.changed()
        return socket

    async def _identify(self, session: Session, data: Json) -> Session:
        assert session.socket is not None
        self.sessions_left -= 1
        self.identified.append(time.monotonic())
        if data["token"] != self.token:
            await session.socket.close(code=4004)
            return session
        if data["intents"] & MESSAGE_CONTENT and not self.content_allowed:
            await session.socket.close(code=4014)
            return session
        if self.invalidate_all:
            await session.send({"op": 9, "d": False})
            return session
        session.id, session.intents = f"session{len(self.identified)}", data["intents"]
        self.sessions[session.id] = session
        ready = {
            **{"v": 10, "user": self._me(), "session_id": session.id, "private_channels": []},
            "guilds": [{"id": each, "unavailable": True} for each in self.servers],
            "resume_gateway_url": f"ws{self.url.removeprefix('http')}/gateway/",
            "application": {"id": APPLICATION, "flags": self.flags},
        }
        await session.push(self._event("READY", ready))
        described = []
        for each in self.channels.values():
            messages = self.messages.get(each["id"], [])
            last = messages[-1]["id"] if messages else None
            described.append({**each, "last_message_id": last})
        server = {
            **{"id": SERVER, "name": "Home", "unavailable": False},
            "channels": [each for each in described if each["type"] == 0],
            "threads": [each for each in described if each["type"] == 11],
        }
        await session.push(self._event("GUILD_CREATE", server))
        return session

    async def _resume(self, session: Session, data: Json) -> Session:
        assert session.socket is not None
        if data["token"] != self.token:
            await session.socket.close(code=4004)
            return session
        known = self.sessions.get(data["session_id"])
        if known is None or known.expired:
            await session.send({"op": 9, "d": False})
            return session
        known.socket, known.compress = session.socket, session.compress
        known.connection = session.connection
        received, self.rewound = 0 if self.rewound else data["seq"], False
        for each in list(known.events):
            if each["s"] > received and each["t"] not in ("READY", "RESUMED"):
                await known.send(each)
        await known.push(self._event("RESUMED", {}))
        return known

    def _event(self, name: str, data: Json) -> Json:
        self._sequence += 1
        return {"op": 0, "t": name, "s": self._sequence, "d": data}

    async def _dispatch(self, name: str, data: Json) -> None:
        needed = GUILD_MESSAGES if "guild_id" in data else DIRECT_MESSAGES
        for _ in range(self.copies(name)):
            for session in self.sessions.values():
                if session.expired or (name.startswith("MESSAGE") and not session.intents & needed):
                    continue
                await session.push(self._event(name, _visible(data, session)))
        self.changed()

    async def _drop(self) -> None:
        for each in self.sessions.values():
            if each.socket is not None and each.connection is not None:
                cut(each.connection)

    async def _send_all(self, frame: Json) -> None:
        for each in self.sessions.values():
            await each.send(frame)

    async def _close_all(self, code: int) -> None:
        for each in self.sessions.values():
            if each.socket is not None:
                await each.socket.close(code=code)


def _visible(data: Json, session: Session) -> Json:
    """A message as the intents of a session show it."""
    mine = data.get("author", {}).get("id") == ME or any(
        each["id"] == ME for each in data.get("mentions", [])
    )
    if mine or "guild_id" not in data or "content" not in data or session.intents & MESSAGE_CONTENT:
        return data
    return {**data, "content": "", "attachments": [], "embeds": [], "components": []}
