"""A fake of Discord: its REST interface, its gateway and the files of its messages, on loopback."""

from __future__ import annotations

import contextlib
import json
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import BodyPartReader, MultipartReader, StreamReader, WSMsgType, web
from aiohttp.web_protocol import RequestHandler

from tests.channels.fakes.base import FakePlatform
from tests.channels.fakes.faults import cut
from tests.channels.fakes.process import serve

API = "/api/v10"
EPOCH_MS = 1_420_070_400_000
ME = "900000000000000001"
APPLICATION = "900000000000000002"
SERVER = "800000000000000001"
CHANNEL = "700000000000000001"
OTHER_CHANNEL = "700000000000000002"
THREAD = "700000000000000003"
FIRST_DIRECT = 600_000_000_000_000_000
FIRST_PERSON = 500_000_000_000_000_000
TOKEN = "fake.discord.token"
NONCE_SECONDS = 300.0
MAX_CHARACTERS = 2_000
MAX_FILE_BYTES = 10 << 20

MESSAGE_CONTENT = 1 << 15
GUILD_MESSAGES = 1 << 9
DIRECT_MESSAGES = 1 << 12
CONTENT_FLAG = 1 << 19

STATUS_OF = {50007: 403, 50001: 403, 50013: 403, 160005: 403, 10003: 404, 50083: 400}
SAYS = {
    50007: "Cannot send messages to this user",
    50001: "Missing Access",
    50013: "Missing Permissions",
    160005: "Thread is locked",
    10003: "Unknown Channel",
    50083: "Thread is archived",
}

Json = dict[str, Any]


@dataclass
class Session:
    """A session of the gateway, with the events that were sent in it."""

    id: str
    intents: int
    events: list[Json] = field(default_factory=list)
    socket: web.WebSocketResponse | None = None
    compress: Callable[[bytes], bytes] | None = None
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


@dataclass(frozen=True)
class Post:
    """A message of the bot, as people see it."""

    id: str
    text: str
    file: str
    thread: str
    pings: bool = False


class FakeDiscord(FakePlatform):
    """Discord with one server, a channel, a thread, and direct chats with as many as write."""

    controls = FakePlatform.controls | {
        *("say", "edit", "delete", "press", "command", "posts", "drop_connections", "go_away"),
        *("expire_sessions", "sessions_begun", "redeliver"),
    }

    def __init__(self, port: int = 0, *, state: Path | None = None) -> None:
        super().__init__(port, state=state)
        self.token = TOKEN
        self.flags = CONTENT_FLAG
        """Of the application: whether it may ask for the content of messages."""
        self.content_allowed = True
        """What the gateway says about that, whatever the flags say."""
        self.interactions_url = ""
        self.sessions_left = 1_000
        self.identified: list[float] = []
        self.invalidate_all = False
        """Whether each new session is refused at once."""
        self.messages: dict[str, list[Json]] = {}
        self.channels: dict[str, Json] = {
            CHANNEL: {"id": CHANNEL, "type": 0, "name": "general", "guild_id": SERVER},
            OTHER_CHANNEL: {"id": OTHER_CHANNEL, "type": 0, "name": "other", "guild_id": SERVER},
            THREAD: {
                **{"id": THREAD, "type": 11, "name": "release", "guild_id": SERVER},
                "parent_id": CHANNEL,
            },
        }
        self.servers = [SERVER]
        """The servers that the bot is in; its channels stay."""
        self.rewound = False
        self.closed: dict[str, int] = {}
        """Chats that refuse messages, with the code of the error."""
        self.refusals = 0
        """How many messages are refused as invalid."""
        self.lookup = True
        """Whether the history of chats can be read."""
        self.limit_kind = "user"
        self.buckets: dict[str, tuple[int, float]] = {}
        """How many messages a chat takes in how many seconds; unlimited by default."""
        self.used: dict[str, list[float]] = {}
        self.typing: list[str] = []
        self.commands: list[list[Json]] = []
        self.interactions: dict[str, list[str]] = {}
        """What became of each interaction, by its id."""
        self.sessions: dict[str, Session] = {}
        self.files: dict[str, bytes] = {}
        self.signed_for = 86_400.0
        """For how many seconds the URLs of files are valid."""
        self._nonces: dict[str, tuple[float, str, str]] = {}
        self._deleted: set[str] = set()
        self._last_id = 0
        self._sequence = 0
        self._tokens: dict[str, str] = {}

    def add_routes(self, router: web.UrlDispatcher) -> None:
        for method, path, handler in (
            ("GET", "/users/@me", self._get_me),
            ("GET", "/oauth2/applications/@me", self._get_application),
            ("GET", "/gateway/bot", self._get_gateway),
            ("GET", "/users/@me/guilds", self._get_servers),
            ("POST", "/users/@me/channels", self._open_direct),
            ("GET", "/channels/{chat}", self._get_channel),
            ("POST", "/channels/{chat}/messages", self._post),
            ("GET", "/channels/{chat}/messages", self._get_history),
            ("GET", "/channels/{chat}/messages/{message}", self._get_message),
            ("DELETE", "/channels/{chat}/messages/{message}", self._delete_own),
            ("POST", "/channels/{chat}/typing", self._type),
            ("PUT", "/applications/{application}/commands", self._put_commands),
            ("POST", "/interactions/{id}/{token}/callback", self._answer_interaction),
            ("DELETE", "/webhooks/{id}/{token}/messages/@original", self._delete_answer),
        ):
            router.add_route(method, API + path, handler)
        router.add_get("/gateway/", self._serve_gateway)
        router.add_get("/attachments/{chat}/{id}/{name}", self._get_file)

    def limited(self, request: web.Request, seconds: float) -> web.Response:
        is_global = self.limit_kind == "global"
        body = {"message": "You are being rate limited.", "retry_after": seconds}
        headers = {"Retry-After": f"{seconds:g}", "X-RateLimit-Scope": self.limit_kind}
        if self.limit_kind == "cloudflare":
            return web.Response(status=429, text="error code: 1015", headers=headers)
        if is_global:
            headers["X-RateLimit-Global"] = "true"
        return _json({**body, "global": is_global}, 429, {**headers, "Via": "1.1 google"})

    def failed(self, request: web.Request, status: int) -> web.Response:
        return _json({"message": f"{status}: Server Error", "code": 0}, status)

    def recall(self, record: dict[str, Any]) -> None:
        if "deleted" in record:
            self._forget(record["chat"], record["deleted"])
            return
        if "channel" in record:
            self.channels[record["channel"]["id"]] = record["channel"]
            return
        message = record["message"]
        self.messages.setdefault(message["channel_id"], []).append(message)
        self._last_id = max(self._last_id, int(message["id"]))
        if "nonce" in message:
            found = (record["at"], message["channel_id"], message["id"])
            self._nonces[message["nonce"]] = found

    # What people and tests do, from any thread.

    def person(self, number: int) -> Json:
        """A person, as an author."""
        return {
            **{"id": str(FIRST_PERSON + number), "username": f"person{number}"},
            **{"global_name": f"Person {number}", "discriminator": "0", "avatar": None},
        }

    def direct_chat(self, person: str) -> str:
        """The direct chat of a person with the bot."""
        chat = str(FIRST_DIRECT + int(person) - FIRST_PERSON)
        if chat not in self.channels:
            channel = {"id": chat, "type": 1, "recipients": [{"id": person}]}
            self.channels[chat] = channel
            self.remember({"channel": channel})
        return chat

    def say(
        self,
        chat: str,
        person: str,
        text: str,
        *,
        mention: bool = True,
        files: Sequence[tuple[str, bytes]] = (),
        at: int | None = None,
        silent: bool = False,
        **fields: object,
    ) -> str:
        """Write as a person; returns the id. `fields` are further fields of the message."""
        number = int(person) - FIRST_PERSON
        in_server = "guild_id" in self.channels[chat]
        mentions = [{"id": ME, "username": "bot", "bot": True}] if in_server and mention else []
        written = {
            "author": self.person(number),
            "content": f"<@{ME}> {text}" if mentions else text,
            "mentions": mentions,
            **fields,
        }

        async def write() -> str:
            message = self._make(chat, written, files, at)
            self._store(message)
            if not silent:
                await self._dispatch("MESSAGE_CREATE", self._live(message))
            return str(message["id"])

        return self.run(write())

    def redeliver(self, message: str) -> None:
        """Push the event of a message again."""
        self.run(self._dispatch("MESSAGE_CREATE", self._live(self._find(message))))

    def edit(self, message: str, text: str) -> None:
        """Change the text of a message as its author."""
        found = self._find(message)
        mention = f"<@{ME}> " if found["content"].startswith(f"<@{ME}>") else ""
        found["content"] = mention + text
        found["edited_timestamp"] = _iso(time.time())
        self.run(self._dispatch("MESSAGE_UPDATE", self._live(found)))

    def preview(self, message: str) -> None:
        """Add the preview of a link to a message: an update without an edit."""
        found = {**self._find(message), "embeds": [{"url": "https://example.org"}]}
        self.run(self._dispatch("MESSAGE_UPDATE", self._live(found)))

    def delete(self, message: str) -> None:
        """Delete a message as its author or a moderator."""
        found = self._find(message)
        self._forget(found["channel_id"], message)
        event = {"id": message, "channel_id": found["channel_id"], **self._server(found)}
        self.run(self._dispatch("MESSAGE_DELETE", event))

    def press(self, message: str, person: str, value: str) -> str:
        """Press a button below a message; returns the id of the interaction."""
        found = self._find(message)
        data = {"component_type": 2, "custom_id": value}
        return self._interact(found["channel_id"], person, 3, data, {"message": found})

    def command(self, chat: str, person: str, name: str, text: str = "") -> str:
        """Use a slash command; returns the id of the interaction."""
        options = [{"type": 3, "name": "text", "value": text}] if text else []
        data = {"id": "1", "name": name, "type": 1, "options": options}
        return self._interact(chat, person, 2, data, {})

    def posts(self, chat: str) -> list[str]:
        """The texts of the bot in a chat; a file is its name."""
        return [each.text or each.file for each in self.parts(chat)]

    def parts(self, chat: str) -> list[Post]:
        """The messages of the bot in a chat."""
        return [
            Post(
                each["id"],
                each["content"],
                each["attachments"][0]["filename"] if each["attachments"] else "",
                chat if self.channels[chat]["type"] == 11 else "",
                each.get("pings", False),
            )
            for each in self.messages.get(chat, [])
            if each["author"]["id"] == ME
        ]

    def drop_connections(self) -> None:
        """Reset the connections to the gateway; sessions stay."""
        self.run(self._drop())

    def go_away(self, seconds: float) -> None:
        """Be gone for so long."""
        self.vanish(seconds)

    def ask_to_reconnect(self) -> None:
        """Ask for a new connection, as Discord does every few hours."""
        self.run(self._send_all({"op": 7, "d": None}))

    def invalidate(self, *, resumable: bool) -> None:
        """End the sessions."""
        if not resumable:
            self.expire_sessions()
        self.run(self._send_all({"op": 9, "d": resumable}))

    def close_gateway(self, code: int) -> None:
        """Close the connections to the gateway with a code."""
        self.run(self._close_all(code))

    def rewind(self) -> None:
        """Let a resumed session send all its events again, as if none had been received."""
        self.rewound = True

    def add_channel(self, name: str) -> str:
        """Add a channel to the server."""
        channel: Json = {
            "id": str(int(CHANNEL) + 100 + len(self.channels)),
            "type": 0,
            "name": name,
        }
        self.channels[channel["id"]] = {**channel, "guild_id": SERVER}
        self.remember({"channel": self.channels[channel["id"]]})
        self.push("CHANNEL_CREATE", self.channels[channel["id"]])
        return str(channel["id"])

    def expire_sessions(self) -> None:
        """Forget the sessions, as Discord does after some minutes without a connection."""
        for each in self.sessions.values():
            each.expired = True

    def sessions_begun(self) -> int:
        """How many sessions were begun."""
        return len(self.identified)

    @property
    def connections(self) -> int:
        """How many connections to the gateway are open, with a session."""
        return sum(
            1
            for each in self.sessions.values()
            if each.socket is not None and not each.socket.closed
        )

    def push(self, event: str, data: Json) -> None:
        """Push any event."""
        self.run(self._dispatch(event, data))

    # State.

    def _next_id(self, at: int | None = None) -> str:
        moment = int(time.time() * 1000) if at is None else at
        found = (moment - EPOCH_MS) << 22
        if at is None:
            found = max(found, self._last_id + 1)
            self._last_id = found
        else:
            found += len(self.files) + sum(map(len, self.messages.values()))
        return str(found)

    def _make(
        self, chat: str, fields: Json, files: Sequence[tuple[str, bytes]], at: int | None = None
    ) -> Json:
        message = self._next_id(at)
        return {
            **{"id": message, "channel_id": chat, "type": 0, "tts": False, "pinned": False},
            **{"timestamp": _iso(time.time()), "edited_timestamp": None, "flags": 0, "embeds": []},
            **{"mention_everyone": False, "mentions": [], "mention_roles": [], "components": []},
            "attachments": [self._attach(chat, name, data) for name, data in files],
            **fields,
        }

    def _attach(self, chat: str, name: str, data: bytes) -> Json:
        file = self._next_id()
        self.files[file] = data
        return {
            **{"id": file, "filename": name, "size": len(data)},
            "content_type": "application/octet-stream",
            "path": f"/attachments/{chat}/{file}/{name}",
        }

    def _signed(self, message: Json) -> Json:
        """A message with fresh URLs of its files."""
        until = f"?ex={int(time.time() + self.signed_for):x}&is=1&hm=1"
        attachments = [
            {**each, "url": f"{self.url}{each['path']}{until}"} for each in message["attachments"]
        ]
        return {**message, "attachments": attachments}

    def _server(self, message: Json) -> Json:
        channel = self.channels[message["channel_id"]]
        return {"guild_id": channel["guild_id"]} if "guild_id" in channel else {}

    def _live(self, message: Json) -> Json:
        server = self._server(message)
        member: Json = {"member": {"nick": None, "roles": []}} if server else {}
        return {**self._signed(message), **server, **member}

    def _stored(self, message: Json) -> Json:
        """A message as the history has it: without its nonce and its server."""
        return {key: value for key, value in self._signed(message).items() if key != "nonce"}

    def _store(self, message: Json) -> None:
        kept = self.messages.setdefault(message["channel_id"], [])
        kept.append(message)
        kept.sort(key=lambda each: int(each["id"]))
        self.remember({"message": message, "at": time.time()})

    def _forget(self, chat: str, message: str) -> None:
        self._deleted.add(message)
        self.messages[chat] = [each for each in self.messages[chat] if each["id"] != message]
        self.remember({"deleted": message, "chat": chat})

    def _find(self, message: str) -> Json:
        return next(
            each for kept in self.messages.values() for each in kept if each["id"] == message
        )

    def _interact(self, chat: str, person: str, kind: int, data: Json, more: Json) -> str:
        interaction = self._next_id()
        token = f"interaction-token-{interaction}"
        self.interactions[interaction] = ["pending"]
        self._tokens[token] = interaction
        author = self.person(int(person) - FIRST_PERSON)
        channel = self.channels[chat]
        who: Json = {"user": author}
        if "guild_id" in channel:
            who = {"member": {"user": author, "roles": []}, "guild_id": channel["guild_id"]}
        event = {
            **{"id": interaction, "application_id": APPLICATION, "type": kind, "data": data},
            **{"channel_id": chat, "token": token, "version": 1, **who, **more},
        }
        self.run(self._dispatch("INTERACTION_CREATE", event))
        return interaction

    # REST.

    def _refused(self, request: web.Request) -> web.Response | None:
        if request.headers.get("Authorization") != f"Bot {self.token}":
            return _json({"message": "401: Unauthorized", "code": 0}, 401)
        return None

    async def _get_me(self, request: web.Request) -> web.Response:
        return self._refused(request) or _json(self._me())

    def _me(self) -> Json:
        return {
            **{"id": ME, "username": "bullpen", "discriminator": "0", "avatar": None, "bot": True},
            **{"global_name": None, "mfa_enabled": False, "verified": True, "flags": 0},
        }

    async def _get_application(self, request: web.Request) -> web.Response:
        application = {
            **{"id": APPLICATION, "name": "Bullpen", "description": "", "icon": None},
            **{"bot_public": False, "bot_require_code_grant": False, "verify_key": ""},
            **{"flags": self.flags, "owner": self.person(1), "team": None, "rpc_origins": []},
            "interactions_endpoint_url": self.interactions_url or None,
        }
        return self._refused(request) or _json(application)

    async def _get_gateway(self, request: web.Request) -> web.Response:
        limit = {"total": 1_000, "remaining": self.sessions_left, "reset_after": 7_200_000}
        answer = {
            "url": f"ws{self.url.removeprefix('http')}/gateway/",
            "shards": 1,
            "session_start_limit": {**limit, "max_concurrency": 1},
        }
        return self._refused(request) or _json(answer)

    async def _get_servers(self, request: web.Request) -> web.Response:
        return self._refused(request) or _json([{"id": each} for each in self.servers])

    async def _open_direct(self, request: web.Request) -> web.Response:
        person = (await request.json())["recipient_id"]
        return self._refused(request) or _json(self.channels[self.direct_chat(str(person))])

    async def _get_channel(self, request: web.Request) -> web.Response:
        channel = self.channels.get(request.match_info["chat"])
        return self._refused(request) or (_error(10003) if channel is None else _json(channel))

    def _closed(self, request: web.Request, chat: str) -> web.Response | None:
        """Why a message is refused whatever it says."""
        if refused := self._refused(request):
            return refused
        if chat not in self.channels:
            return _error(10003)
        if chat in self.closed:
            return _error(self.closed[chat])
        if self.refusals:
            self.refusals -= 1
            return _json({"message": "Invalid Form Body", "code": 50035, "errors": {}}, 400)
        return None

    async def _post(self, request: web.Request) -> web.Response:
        chat = request.match_info["chat"]
        if refused := self._closed(request, chat):
            return refused
        headers = self._count(chat)
        if headers is None:
            return self.limited(request, self.buckets[chat][1])
        body, files = await _read_post(request)
        if invalid := _invalid(body, files):
            return invalid
        nonce = str(body.get("nonce", ""))
        if nonce and body.get("enforce_nonce"):
            at, known_chat, known = self._nonces.get(nonce, (0.0, "", ""))
            if time.time() - at < NONCE_SECONDS:
                if known in self._deleted:
                    return _json({"message": "Unknown Message", "code": 10008}, 404)
                message = next(each for each in self.messages[known_chat] if each["id"] == known)
                return _json(self._signed(message), headers=headers)
        allowed = body.get("allowed_mentions", {}).get("parse", ["everyone"])
        fields = {
            "author": self._me(),
            "content": str(body.get("content", "")).strip(),
            "components": body.get("components", []),
            "flags": body.get("flags", 0),
            "pings": "@everyone" in str(body.get("content")) and "everyone" in allowed,
            **({"nonce": body["nonce"]} if nonce else {}),
            **(
                {"message_reference": body["message_reference"]}
                if "message_reference" in body
                else {}
            ),
        }
        message = self._make(chat, fields, files)
        self._store(message)
        if nonce:
            self._nonces[nonce] = time.time(), chat, message["id"]
        await self._dispatch("MESSAGE_CREATE", self._live(message))
        return _json(self._signed(message), headers=headers)

    def _count(self, chat: str) -> dict[str, str] | None:
        """The headers of the chat's rate limit; None if it is used up."""
        limit, seconds = self.buckets.get(chat, (1_000_000, 1.0))
        now = time.monotonic()
        used = [each for each in self.used.get(chat, []) if now - each < seconds]
        if len(used) >= limit:
            return None
        self.used[chat] = [*used, now]
        return {
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(limit - len(used) - 1),
            "X-RateLimit-Reset": f"{time.time() + seconds:.3f}",
            "X-RateLimit-Reset-After": f"{seconds:.3f}",
            "X-RateLimit-Bucket": "messages",
        }

    async def _get_history(self, request: web.Request) -> web.Response:
        chat = request.match_info["chat"]
        if refused := self._refused(request):
            return refused
        if chat not in self.channels:
            return _error(10003)
        if self.closed.get(chat) == 50001:
            return _error(50001)
        if not self.lookup:
            return self.failed(request, 503)
        after = int(request.query.get("after", "0"))
        kept = [each for each in self.messages.get(chat, []) if int(each["id"]) > after]
        page = kept[: int(request.query.get("limit", "50"))]
        return _json([self._stored(each) for each in reversed(page)])

    async def _get_message(self, request: web.Request) -> web.Response:
        kept = self.messages.get(request.match_info["chat"], [])
        found = [each for each in kept if each["id"] == request.match_info["message"]]
        unknown = _json({"message": "Unknown Message", "code": 10008}, 404)
        return self._refused(request) or (_json(self._stored(found[0])) if found else unknown)

    async def _delete_own(self, request: web.Request) -> web.Response:
        self._forget(request.match_info["chat"], request.match_info["message"])
        return web.Response(status=204)

    async def _type(self, request: web.Request) -> web.Response:
        self.typing.append(request.match_info["chat"])
        return self._refused(request) or web.Response(status=204)

    async def _put_commands(self, request: web.Request) -> web.Response:
        self.commands.append(await request.json())
        return self._refused(request) or _json(self.commands[-1])

    async def _answer_interaction(self, request: web.Request) -> web.Response:
        interaction = self._tokens[request.match_info["token"]]
        kind = {5: "deferred", 6: "updated"}.get((await request.json())["type"], "answered")
        self.interactions[interaction].append(kind)
        return web.Response(status=204)

    async def _delete_answer(self, request: web.Request) -> web.Response:
        self.interactions[self._tokens[request.match_info["token"]]].append("deleted")
        return web.Response(status=204)

    async def _get_file(self, request: web.Request) -> web.Response:
        file = request.match_info["id"]
        if int(request.query["ex"], 16) < time.time() or file not in self.files:
            return web.Response(status=404, text="This content is no longer available.")
        return web.Response(body=self.files[file], content_type="application/octet-stream")

    # The gateway.

    async def _serve_gateway(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        assert request.query["compress"] == "zlib-stream", request.query
        deflate = zlib.compressobj()

        def compress(data: bytes) -> bytes:
            return deflate.compress(data) + deflate.flush(zlib.Z_SYNC_FLUSH)

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


async def _read_post(request: web.Request) -> tuple[Json, list[tuple[str, bytes]]]:
    if request.content_type == "application/json":
        return await request.json(), []
    body: Json = {}
    files = []
    content = StreamReader(request.protocol, MAX_FILE_BYTES)  # the request's own is read already
    content.feed_data(await request.read())
    content.feed_eof()
    async for part in MultipartReader(request.headers, content):
        assert isinstance(part, BodyPartReader)
        if part.name == "payload_json":
            body = json.loads(await part.text())
        else:
            files.append((part.filename or "", bytes(await part.read())))
    return body, files


def _invalid(body: Json, files: list[tuple[str, bytes]]) -> web.Response | None:
    if sum(len(data) for _, data in files) > MAX_FILE_BYTES:
        return _json({"message": "Request entity too large", "code": 40005}, 413)
    content = str(body.get("content", ""))
    if len(content) > MAX_CHARACTERS or len(str(body.get("nonce", ""))) > 25:
        return _json({"message": "Invalid Form Body", "code": 50035, "errors": {}}, 400)
    if not content.strip() and not files:
        return _json({"message": "Cannot send an empty message", "code": 50006}, 400)
    return None


def _json(body: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """JSON with the type that the SDK wants, without a charset."""
    kind = {"Content-Type": "application/json", "Via": "1.1 google", **(headers or {})}
    return web.Response(body=json.dumps(body).encode(), status=status, headers=kind)


def _error(code: int) -> web.Response:
    return _json({"message": SAYS[code], "code": code}, STATUS_OF[code])


def _iso(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1e6):06d}+00:00"


class DiscordHarness:
    """The fake as the conformance suite drives it."""

    channel = "discord"

    def __init__(self, fake: FakeDiscord) -> None:
        self.fake = fake
        self._gone = contextlib.ExitStack()

    def settings(self) -> dict[str, str]:
        """The settings of an account on this fake."""
        return {"bot_token": TOKEN, "api_url": self.fake.url + API}

    def chat(self, direct: bool = True) -> str:
        """A chat: the direct one of the first person, or a channel of the server."""
        return self.direct(1) if direct else CHANNEL

    def direct(self, number: int) -> str:
        """The direct chat with a person."""
        return self.fake.direct_chat(self.person(number))

    def person(self, number: int) -> str:
        """The id of a person."""
        return str(FIRST_PERSON + number)

    def say(
        self,
        chat: str,
        person: str,
        text: str,
        *,
        mention: bool = True,
        files: Sequence[tuple[str, bytes]] = (),
        thread: str = "",
    ) -> str:
        """A person writes; returns the id of the message. A thread is a chat."""
        return self.fake.say(thread or chat, person, text, mention=mention, files=files)

    def redeliver(self, message: str) -> None:
        """Send a message again, as an event and by a resumed session."""
        self.fake.redeliver(message)
        self.fake.rewind()
        self.fake.drop_connections()

    def edit(self, chat: str, message: str, text: str) -> None:
        """A person changes a message."""
        self.fake.edit(message, text)

    def delete(self, chat: str, message: str) -> None:
        """A person deletes a message."""
        self.fake.delete(message)

    def press(self, chat: str, person: str, value: str) -> None:
        """A person presses a button below the last message of the bot."""
        self.fake.press(self.fake.parts(chat)[-1].id, person, value)

    def posts(self, chat: str) -> list[str]:
        """The texts of the bot as people see them."""
        return self.fake.posts(chat)

    def parts(self, chat: str) -> list[Post]:
        """The messages of the bot."""
        return self.fake.parts(chat)

    def fail_next(self, fault: str, n: int = 1, seconds: float = 1.0) -> None:
        """Let the next sends fail."""
        on = "POST */messages"
        match fault:
            case "refuse":
                self.fake.vanish(0.5 * n)
            case "error500":
                self.fake.fail("error", on, times=n)
            case "taken_then_500":
                self.fake.fail("error", on, times=n, taken=True)
            case "rate_limit":
                self.fake.fail("limit", on, times=n, seconds=seconds)
            case "refused":
                self.fake.refusals += n
            case "revoked":
                self.fake.token = "another.token.now"
            case _:
                self.fake.fail(fault, on, times=n)

    def heal(self) -> None:
        """End what `fail_next` began and did not count, such as a revoked token."""
        self.fake.token = TOKEN
        self.fake.refusals = 0
        self.fake.heal()

    def offline(self) -> None:
        """Discord is not reachable for so long that its sessions end."""
        self._gone.enter_context(self.fake.gone())
        self.fake.expire_sessions()

    def online(self) -> None:
        """Discord is reachable again."""
        self._gone.close()

    def is_acked(self, message: str) -> bool:
        """Discord wants no acknowledgement."""
        return True

    def lookup_off(self) -> None:
        """The history cannot be read."""
        self.fake.lookup = False

    def lookup_on(self) -> None:
        """The history can be read again."""
        self.fake.lookup = True

    def progress(self, chat: str) -> list[str]:
        """The progress that people see: how often the bot was typing."""
        return ["typing"] * self.fake.typing.count(chat)


if __name__ == "__main__":
    serve(FakeDiscord)
