"""A fake of Slack: its Web API, Socket Mode, HTTP events and files, for one workspace and one app.

People write with `say`, `edit`, `delete`, `press` and `command`. What the app posted is in `posts`.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLContext
from typing import cast

import aiohttp
from aiohttp import WSMsgType, web

from tests.channels.fakes.base import FakePlatform
from tests.channels.fakes.faults import SIGN_IN_PAGE, Fault
from tests.channels.fakes.process import serve

Json = dict[str, object]

BOT_TOKEN = "xoxb-fake-0123456789"
APP_TOKEN = "xapp-fake-0123456789"
SIGNING_SECRET = "0123456789abcdef0123456789abcdef"
TEAM, APP, BOT, BOT_USER = "T0FAKE001", "A0FAKE001", "B0FAKE001", "U0FAKEBOT"
SCOPES = (
    "app_mentions:read,assistant:write,channels:history,channels:read,chat:write,"
    "chat:write.customize,commands,files:read,files:write,groups:history,groups:read,im:history,"
    "im:read,im:write,metadata.message:read,mpim:history,mpim:read,reactions:write,users:read"
)
ACK_SECONDS = 3.0
RETRY_SECONDS = (0.1, 0.5, 1.0)
"""In place of Slack's at once, 1 min and 5 min."""
MAX_CONNECTIONS = 10


@dataclass(slots=True)
class FakeChat:
    """A channel or direct chat with its messages, in order."""

    id: str
    direct: bool
    name: str = ""
    person: str = ""
    archived: bool = False
    messages: list[Json] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The type of the chat in events."""
        return "im" if self.direct else "channel"


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


@dataclass(frozen=True, slots=True)
class Post:
    """A message of the app, as people see it."""

    id: str
    text: str
    file: str = ""
    thread: str = ""


class FakeSlack(FakePlatform):
    """Slack on loopback."""

    controls = FakePlatform.controls | {
        *("say", "edit", "delete", "press", "redeliver", "posts", "unacked", "drop_connections"),
        *("go_away", "is_acked", "new_chat", "command", "stop_session", "shared_file_ids"),
    }

    def __init__(
        self, port: int = 0, *, state: Path | None = None, tls: SSLContext | None = None
    ) -> None:
        super().__init__(port, state=state, tls=tls)
        self.chats: dict[str, FakeChat] = {}
        self.files: dict[str, Json] = {}
        self.contents: dict[str, bytes] = {}
        self.deliveries: list[Delivery] = []
        self.statuses: dict[tuple[str, str], str] = {}
        self.sessions: dict[tuple[str, str], str] = {}
        self.reactions: dict[tuple[str, str], list[str]] = {}
        self.refusals: dict[str, list[str]] = {}
        """For each method, the errors of its next calls."""
        self.token_error = ""
        """The error of every call, for example `token_revoked`."""
        self.app_token_error = ""
        self.scopes = SCOPES
        self.agents = False
        """Whether the plan has sessions of agents."""
        self.status_works = True
        self.look_ups = True
        """Whether history and files can be read."""
        self.extra_connections = 0
        self.max_page = 1_000
        self.dropping = False
        """Whether events are lost at once, as after an outage of more than six minutes."""
        self.hook = ""
        """The URL for HTTP events; empty for Socket Mode."""
        self.keep_greeting = False
        """Whether connections get no `hello`."""
        self._sockets: list[web.WebSocketResponse] = []
        self._tickets: set[str] = set()
        self._last = 0
        self._turn = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()

    # --- what tests do -------------------------------------------------------------------------

    def new_chat(self, direct: bool, person: str = "", name: str = "") -> str:
        """A chat with the bot in it."""
        number = len(self.chats) + 1
        chat_id = f"{'D' if direct else 'C'}0CHAT{number:04d}"
        self._keep({"chat": {"id": chat_id, "direct": direct, "name": name, "person": person}})
        return chat_id

    def open_chat(self, person: str) -> str:
        """The direct chat with a person."""
        found = next((each.id for each in self.chats.values() if each.person == person), None)
        return found or self.new_chat(True, person)

    def say(
        self,
        chat: str,
        person: str,
        text: str,
        *,
        mention: bool = True,
        files: Sequence[tuple[str, bytes]] = (),
        thread: str = "",
        live: bool = True,
        **extra: object,
    ) -> str:
        """A person writes; returns the time of the message, which is its id."""
        found = self.chats[chat]
        if mention and not found.direct:
            text = f"<@{BOT_USER}> {text}"
        message: Json = {
            "type": "message",
            "user": person,
            "text": text,
            "ts": self.next_time(),
            "client_msg_id": str(uuid.uuid4()),
            "team": TEAM,
            "user_team": TEAM,
        }
        if thread:
            message["thread_ts"] = thread
            root = self.find(chat, thread)
            message["parent_user_id"] = "" if root is None else root.get("user", "")
        if files:
            message["subtype"] = "file_share"
            message["files"] = [self.add_file(name, data) for name, data in files]
        message.update(extra)
        self._keep({"message": message, "in": chat})
        if live:
            self.push_message(chat, message)
        return str(message["ts"])

    def push_message(self, chat: str, message: Json) -> None:
        """Push the events for a message: a mention has two of them."""
        found = self.chats[chat]
        event = {**message, "channel": chat, "channel_type": found.kind, "event_ts": message["ts"]}
        self.push_event("message", event)
        if not found.direct and f"<@{BOT_USER}>" in str(message.get("text")):
            mention = {key: value for key, value in event.items() if key != "channel_type"}
            self.push_event("app_mention", {**mention, "type": "app_mention"})

    def edit(self, chat: str, message: str, text: str, *, edited: bool = True) -> None:
        """A person changes a message; or Slack does, to show a link."""
        found = self.find(chat, message)
        assert found is not None
        before = dict(found)
        found["text"] = text
        if edited:
            found["edited"] = {"user": found["user"], "ts": self.next_time()}
        self.push_event(
            "message", self._change(chat, "message_changed", before, message=dict(found))
        )

    def delete(self, chat: str, message: str) -> None:
        """A person deletes a message."""
        found = self.find(chat, message)
        assert found is not None
        self.chats[chat].messages.remove(found)
        self.push_event("message", self._change(chat, "message_deleted", found, deleted_ts=message))

    def _change(self, chat: str, subtype: str, before: Json, **rest: object) -> Json:
        at = self.next_time()
        return {
            "type": "message",
            "subtype": subtype,
            "hidden": True,
            "channel": chat,
            "channel_type": self.chats[chat].kind,
            "ts": at,
            "event_ts": at,
            "previous_message": before,
            **rest,
        }

    def press(self, chat: str, person: str, value: str) -> None:
        """A person presses the button with this value, which must be there."""
        message = next(
            each for each in reversed(self.chats[chat].messages) if value in _values(each)
        )
        self.push(
            "interactive",
            {
                "type": "block_actions",
                "team": {"id": TEAM},
                "user": {"id": person, "username": person.lower(), "team_id": TEAM},
                "api_app_id": APP,
                "container": {"type": "message", "message_ts": message["ts"], "channel_id": chat},
                "trigger_id": f"{next(self._turn)}.{uuid.uuid4().hex}",
                "channel": {"id": chat, "name": self.chats[chat].name or "directmessage"},
                "message": message,
                "actions": [
                    {
                        "type": "button",
                        "action_id": "bullpen_0",
                        "value": value,
                        "action_ts": self.next_time(),
                    }
                ],
            },
            "interactive",
        )

    def command(self, chat: str, person: str, command: str, text: str = "") -> None:
        """A person writes a slash command."""
        body: Json = {
            "command": command,
            "text": text,
            "team_id": TEAM,
            "user_id": person,
            "user_name": person.lower(),
            "channel_id": chat,
            "channel_name": self.chats[chat].name or "directmessage",
            "trigger_id": f"{next(self._turn)}.{uuid.uuid4().hex}",
            "response_url": f"{self.url}/commands/1",
            "api_app_id": APP,
        }
        self.push("slash_commands", body, "slash_commands")

    def stop_session(self, chat: str, person: str, thread: str) -> None:
        """A person presses the Stop of an agent's session."""
        event: Json = {
            "type": "agent_session_stopped",
            "channel": chat,
            "thread_ts": thread,
            "user": person,
            "streaming_message_ts": [],
            "event_ts": self.next_time(),
        }
        self.push_event("agent_session_stopped", event)

    def redeliver(self, message: str) -> None:
        """Send every event of a message again, under its own id and under a new one."""
        for each in list(self.deliveries):
            event = each.body.get("event")
            if isinstance(event, dict) and message in (event.get("ts"), event.get("message_ts")):
                self._call(lambda each=each: self._begin(each))  # type: ignore[misc]
                self.push_event(each.name, event)

    def posts(self, chat: str) -> list[str]:
        """The texts of the app in a chat and its threads, as people see them."""
        return [each.text for each in self.parts(chat) if not each.file]

    def parts(self, chat: str) -> list[Post]:
        """The messages of the app in a chat and its threads."""
        found = []
        for each in self.chats[chat].messages:
            if each.get("user") != BOT_USER:
                continue
            files = cast(list[Json], each.get("files") or [{}])
            name, thread = str(files[0].get("name", "")), str(each.get("thread_ts", ""))
            found.append(Post(str(each["ts"]), plain(each), name, thread))
        return found

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

    def drop_connections(self) -> None:
        """Cut all connections of Socket Mode."""
        self.run(self._drop())

    def disconnect(self, reason: str = "warning", count: int = 1) -> None:
        """Announce the end of connections, the oldest first."""
        self.run(self._disconnect(reason, count))

    def go_away(self, seconds: float) -> None:
        """Be gone for some time."""
        self.vanish(seconds)

    def connections(self) -> int:
        """The open connections of Socket Mode."""
        return len(self._sockets)

    def refuse(self, method: str, error: str, times: int = 1) -> None:
        """Answer the next calls of a method with this error."""
        self.refusals.setdefault(method, []).extend([error] * times)

    def shared_file_ids(self) -> list[str]:
        """The files that people can see."""
        return [name for name, each in self.files.items() if each.get("shares")]

    def add_file(self, name: str, data: bytes, **extra: object) -> Json:
        """A file in the workspace."""
        file_id = f"F0FILE{len(self.files) + 1:04d}"
        file: Json = {
            "id": file_id,
            "name": name,
            "title": name,
            "mimetype": "application/octet-stream",
            "size": len(data),
            "mode": "hosted",
            "url_private": f"{self.url}/files-pri/{file_id}/{name}",
            "url_private_download": f"{self.url}/files-pri/{file_id}/download/{name}",
            **extra,
        }
        self.files[file_id], self.contents[file_id] = file, data
        return file

    def next_time(self) -> str:
        """The next time of a message; each is later than the last."""
        self._last = max(self._last + 1, time.time_ns() // 1000)
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"

    def find(self, chat: str, message: str) -> Json | None:
        """The message of this time."""
        return next((each for each in self.chats[chat].messages if each["ts"] == message), None)

    # --- events --------------------------------------------------------------------------------

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

    # --- the wire ------------------------------------------------------------------------------

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_route("*", "/api/{method}", self._api)
        router.add_get("/link", self._socket)
        router.add_post("/upload/{file}", self._upload)
        router.add_get("/files-pri/{file}/{name:.*}", self._download)

    def failed(self, request: web.Request, status: int) -> web.Response:
        return web.Response(
            status=status, text="<html>Internal Error</html>", content_type="text/html"
        )

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

    async def _api(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        app_level = method == "apps.connections.open"
        if app_level:
            error = self.app_token_error or ("" if token == APP_TOKEN else "invalid_auth")
        else:
            error = self.token_error or ("" if token == BOT_TOKEN else "invalid_auth")
        if not error and self.refusals.get(method):
            error = self.refusals[method].pop(0)
        if error in ("fatal_error", "internal_error", "service_unavailable"):
            error = f"{error}"
        if error:
            needed = {"needed": "chat:write", "provided": ""} if error == "missing_scope" else {}
            return web.json_response({"ok": False, "error": error, **needed})
        handler = getattr(self, f"_{method.replace('.', '_')}", None)
        if handler is None:
            return web.json_response({"ok": False, "error": "unknown_method"})
        answer = handler(await _arguments(request))
        headers = {"X-OAuth-Scopes": self.scopes}
        return web.json_response({"ok": "error" not in answer, **answer}, headers=headers)

    def _auth_test(self, given: Json) -> Json:
        return {
            "url": "https://fake.slack.com/",
            "team": "Fake",
            "user": "bullpen",
            "team_id": TEAM,
            "user_id": BOT_USER,
            "bot_id": BOT,
        }

    def _apps_connections_open(self, given: Json) -> Json:
        ticket = uuid.uuid4().hex
        self._tickets.add(ticket)
        return {"url": f"ws://127.0.0.1:{self.port}/link?ticket={ticket}&app_id={APP}"}

    def _chat_postMessage(self, given: Json) -> Json:  # noqa: N802 - the platform's names
        chat = self.chats.get(str(given.get("channel")))
        if chat is None:
            return {"error": "channel_not_found"}
        if chat.archived:
            return {"error": "is_archived"}
        if not given.get("text") and not given.get("blocks"):
            return {"error": "no_text"}
        message: Json = {
            "type": "message",
            "user": BOT_USER,
            "bot_id": BOT,
            "app_id": APP,
            "team": TEAM,
            "ts": self.next_time(),
            "text": given.get("text", ""),
        }
        for name in ("blocks", "metadata", "thread_ts", "username"):
            if given.get(name):
                message[name] = given[name]
        if given.get("username"):
            message["subtype"] = "bot_message"
        self._keep({"message": message, "in": chat.id})
        self._echo(chat, message)
        return {"channel": chat.id, "ts": message["ts"], "message": message}

    def _echo(self, chat: FakeChat, message: Json) -> None:
        """The app gets its own messages too, and their metadata as an event."""
        shown = {key: value for key, value in message.items() if key != "metadata"}
        self.push_event("message", {**shown, "channel": chat.id, "channel_type": chat.kind})
        if message.get("metadata"):
            event: Json = {
                "app_id": APP,
                "bot_id": BOT,
                "user_id": BOT_USER,
                "team_id": TEAM,
                "channel_id": chat.id,
                "metadata": message["metadata"],
                "message_ts": message["ts"],
                "event_ts": message["ts"],
            }
            self.push_event("message_metadata_posted", event)

    def _chat_delete(self, given: Json) -> Json:
        chat, found = self.chats[str(given["channel"])], str(given["ts"])
        chat.messages = [each for each in chat.messages if each["ts"] != found]
        return {}

    def _conversations_history(self, given: Json) -> Json:
        chat = self.chats.get(str(given.get("channel")))
        if chat is None:
            return {"error": "channel_not_found"}
        roots = [
            each
            for each in chat.messages
            if each.get("thread_ts", each["ts"]) == each["ts"]
            or each.get("subtype") == "thread_broadcast"
        ]
        return self._page(sorted(roots, key=lambda each: str(each["ts"]), reverse=True), given)

    def _conversations_replies(self, given: Json) -> Json:
        chat = self.chats.get(str(given.get("channel")))
        if chat is None:
            return {"error": "channel_not_found"}
        root = given.get("ts")
        if self.find(chat.id, str(root)) is None:
            return {"error": "thread_not_found"}
        thread = [each for each in chat.messages if root in (each["ts"], each.get("thread_ts"))]
        oldest = {**given, "oldest": "0"}
        after = str(given.get("oldest") or "0")
        thread = [
            each for each in thread if each["ts"] == root or float(str(each["ts"])) > float(after)
        ]
        return self._page(thread, oldest)

    def _page(self, messages: list[Json], given: Json) -> Json:
        if not self.look_ups:
            return {"error": "service_unavailable"}
        oldest, limit = float(str(given.get("oldest") or 0)), int(str(given.get("limit") or 100))
        at_least = str(given.get("inclusive")) in ("1", "True", "true")
        kept = [
            each
            for each in messages
            if float(str(each["ts"])) > oldest or (at_least and float(str(each["ts"])) == oldest)
        ]
        start, size = int(str(given.get("cursor") or 0)), min(limit, self.max_page)
        page = kept[start : start + size]
        if str(given.get("include_all_metadata")) not in ("1", "True", "true"):
            page = [{name: each[name] for name in each if name != "metadata"} for each in page]
        more = start + size < len(kept)
        return {
            "messages": page,
            "has_more": more,
            "response_metadata": {"next_cursor": str(start + size) if more else ""},
        }

    def _conversations_open(self, given: Json) -> Json:
        person = str(given.get("users"))
        if not person.startswith("U"):
            return {"error": "user_not_found"}
        return {"channel": {"id": self.open_chat(person)}}

    def _users_conversations(self, given: Json) -> Json:
        if not self.look_ups:
            return {"error": "service_unavailable"}
        channels = [
            {"id": each.id, "is_im": each.direct, "name": each.name, "user": each.person}
            for each in self.chats.values()
            if not each.archived
        ]
        return {"channels": channels, "response_metadata": {"next_cursor": ""}}

    def _users_info(self, given: Json) -> Json:
        person = str(given.get("user"))
        return {"user": {"id": person, "name": person.lower(), "profile": {"display_name": ""}}}

    def _reactions_add(self, given: Json) -> Json:
        marks = self.reactions.setdefault((str(given["channel"]), str(given["timestamp"])), [])
        if given["name"] in marks:
            return {"error": "already_reacted"}
        marks.append(str(given["name"]))
        return {}

    def _reactions_remove(self, given: Json) -> Json:
        marks = self.reactions.setdefault((str(given["channel"]), str(given["timestamp"])), [])
        if given["name"] not in marks:
            return {"error": "no_reaction"}
        marks.remove(str(given["name"]))
        return {}

    def _assistant_threads_setStatus(self, given: Json) -> Json:  # noqa: N802
        if not self.status_works:
            return {"error": "not_allowed"}
        self.statuses[str(given["channel_id"]), str(given["thread_ts"])] = str(given["status"])
        return {}

    def _agents_sessions_setStatus(self, given: Json) -> Json:  # noqa: N802
        if not self.agents:
            return {"error": "feature_not_enabled"}
        self.sessions[str(given["channel_id"]), str(given["thread_ts"])] = str(given["status"])
        return {"status": given["status"]}

    def _files_getUploadURLExternal(self, given: Json) -> Json:  # noqa: N802
        file = self.add_file(str(given["filename"]), b"")
        file["size"] = int(str(given["length"]))
        return {"file_id": file["id"], "upload_url": f"{self.url}/upload/{file['id']}"}

    async def _upload(self, request: web.Request) -> web.Response:
        self.contents[request.match_info["file"]] = await request.read()
        return web.Response(text="OK")

    def _files_completeUploadExternal(self, given: Json) -> Json:  # noqa: N802
        files = cast(list[Json], json.loads(str(given["files"])))
        chat = self.chats.get(str(given.get("channel_id")))
        if chat is None:
            return {"error": "channel_not_found"}
        shared = []
        for each in files:
            file = self.files[str(each["id"])]
            message: Json = {
                "type": "message",
                "subtype": "file_share",
                "user": BOT_USER,
                "bot_id": BOT,
                "text": "",
                "ts": self.next_time(),
                "files": [file],
            }
            if given.get("thread_ts"):
                message["thread_ts"] = given["thread_ts"]
            file["shares"] = {
                "private" if chat.direct else "public": {chat.id: [{"ts": message["ts"]}]}
            }
            self._keep({"message": message, "in": chat.id})
            self._echo(chat, message)
            shared.append(file)
        return {"files": shared}

    def _files_info(self, given: Json) -> Json:
        file = self.files.get(str(given.get("file")))
        if not self.look_ups:
            return {"error": "service_unavailable"}
        return {"error": "file_not_found"} if file is None else {"file": file}

    async def _download(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(text=SIGN_IN_PAGE, content_type="text/html")
        return web.Response(body=self.contents[request.match_info["file"]])

    def _keep(self, record: Json) -> None:
        self.remember(record)
        self.recall(record)
        self.changed()

    def recall(self, record: dict[str, object]) -> None:
        if isinstance(chat := record.get("chat"), dict):
            self.chats[chat["id"]] = FakeChat(**chat)
        if isinstance(message := record.get("message"), dict):
            self.chats[str(record["in"])].messages.append(message)


async def _arguments(request: web.Request) -> Json:
    given: Json = dict(request.query)
    if request.content_type == "application/json":
        body = await request.json()
        assert isinstance(body, dict)
        return given | body
    return given | dict(await request.post())


def sign(body: str, *, secret: str = SIGNING_SECRET, at: float | None = None) -> dict[str, str]:
    """The headers of a signed request."""
    stamp = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}


def plain(message: Json) -> str:
    """What people see of a message, without styles."""
    blocks = message.get("blocks")
    if not isinstance(blocks, list):
        return str(message.get("text", ""))
    return "\n".join(filter(None, ("".join(_texts(each)) for each in blocks))).strip()


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    if not isinstance(value, dict) or value.get("type") == "actions":
        return
    kind = value.get("type")
    if kind == "link":
        yield str(value.get("text") or value.get("url"))
    elif isinstance(value.get("text"), str):
        yield value["text"]
    yield from _texts(value.get("elements"))
    yield from _texts(value.get("rows"))
    if kind in ("rich_text_preformatted", "rich_text_list", "rich_text_quote"):
        yield "\n"


def _values(message: Json) -> list[str]:
    blocks = message.get("blocks")
    actions = [each for each in blocks or () if each["type"] == "actions"]  # type: ignore[attr-defined]
    return [button["value"] for each in actions for button in each["elements"]]


class SlackHarness:
    """The fake as the conformance suite drives it."""

    channel = "slack"

    def __init__(self, fake: FakeSlack) -> None:
        self.fake = fake
        self._gone = ExitStack()

    def settings(self) -> dict[str, str]:
        """The settings of an account on this fake."""
        return {
            "bot_token": BOT_TOKEN,
            "app_token": APP_TOKEN,
            "signing_secret": SIGNING_SECRET,
            "transport": "socket",
            "api_url": f"{self.fake.url}/api/",
        }

    def chat(self, direct: bool = True) -> str:
        """The direct chat of the first person, or the channel."""
        if direct:
            return self.direct(1)
        found = next((each.id for each in self.fake.chats.values() if not each.direct), None)
        return found or self.fake.new_chat(False, name="general")

    def direct(self, number: int) -> str:
        """The direct chat with a person."""
        return self.fake.open_chat(self.person(number))

    def person(self, number: int) -> str:
        """The id of a person."""
        return f"U0PERSON{number:02d}"

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
        """A person writes; returns the id of the message."""
        return self.fake.say(chat, person, text, mention=mention, files=files, thread=thread)

    def redeliver(self, message: str) -> None:
        """Send a message again, in every way that Slack does."""
        self.fake.redeliver(message)

    def edit(self, chat: str, message: str, text: str) -> None:
        """A person changes a message."""
        self.fake.edit(chat, message, text)

    def delete(self, chat: str, message: str) -> None:
        """A person deletes a message."""
        self.fake.delete(chat, message)

    def press(self, chat: str, person: str, value: str) -> None:
        """A person presses a button."""
        self.fake.press(chat, person, value)

    def posts(self, chat: str) -> list[str]:
        """The texts of the bot as people see them."""
        return self.fake.posts(chat)

    def parts(self, chat: str) -> list[Post]:
        """The messages of the bot."""
        return self.fake.parts(chat)

    def fail_next(self, fault: str, n: int = 1, seconds: float = 1.0) -> None:
        """Let the next sends fail."""
        on = "POST /api/chat.postMessage"
        match fault:
            case "refuse":
                self.fake.vanish(0.5 * n)
            case "error500":
                self.fake.fail(Fault.ERROR, on, times=n)
            case "taken_then_500":
                self.fake.fail(Fault.ERROR, on, times=n, taken=True)
            case "rate_limit":
                self.fake.fail(Fault.LIMIT, on, times=n, seconds=seconds)
            case "refused":
                self.fake.refuse("chat.postMessage", "restricted_action", n)
            case "revoked":
                self.fake.token_error = "token_revoked"
            case _:
                self.fake.fail(Fault(fault), on, times=n)

    def heal(self) -> None:
        """End what `fail_next` began and did not count, such as a revoked token."""
        self.fake.token_error = ""
        self.fake.heal()

    def offline(self) -> None:
        """Slack is not reachable for so long that its events are lost."""
        self.fake.dropping = True
        self._gone.enter_context(self.fake.gone())

    def online(self) -> None:
        """Slack is reachable again."""
        self._gone.close()
        self.fake.dropping = False

    def is_acked(self, message: str) -> bool:
        """Whether the client has acknowledged a message."""
        return self.fake.is_acked(message)

    def lookup_off(self) -> None:
        """Look-ups find nothing out."""
        self.fake.look_ups = False

    def lookup_on(self) -> None:
        """Look-ups work again."""
        self.fake.look_ups = True

    def progress(self, chat: str) -> list[str]:
        """The progress that people see in a chat: status lines and reactions."""
        statuses = {**self.fake.statuses, **self.fake.sessions}
        lines = [text for (place, _), text in statuses.items() if place == chat and text]
        marks = [each for (place, _), each in self.fake.reactions.items() if place == chat]
        return lines + [name for each in marks for name in each]


if __name__ == "__main__":
    serve(FakeSlack)
