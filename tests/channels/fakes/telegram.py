"""A fake of Telegram's Bot API on loopback: methods, long polling, webhooks, files and errors."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from ssl import SSLContext
from urllib.parse import parse_qsl

import aiohttp
from aiohttp import web

from tests.channels.fakes.base import FakePlatform
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.process import serve

TOKEN = "7000000001:AAF-fake_token_of_the_fake_telegram_server"
BOT_ID = 7000000001
BOT_NAME = "bullpen_bot"
SEND = "POST /bot*/sendMessage"
POLL_RETRY_SECONDS = 0.2
PEOPLE = 20
"""The people who have opened a chat with the bot when a harness begins."""
NO_MESSAGE = -1

Object = dict[str, object]


class Failed(Exception):
    """A method answers with an error."""

    def __init__(self, code: int, description: str, **parameters: object) -> None:
        super().__init__(description)
        self.code, self.description, self.parameters = code, description, parameters

    def answer(self) -> web.Response:
        """The error as Telegram sends it."""
        body: Object = {"ok": False, "error_code": self.code, "description": self.description}
        if self.parameters:
            body["parameters"] = self.parameters
        return web.json_response(body, status=self.code)


@dataclass(frozen=True, slots=True)
class Post:
    """A message of the bot, as people see it."""

    id: str
    chat: str
    text: str
    entities: list[Object] = field(default_factory=list)
    file: str = ""
    kind: str = ""
    data: str = ""
    """The file, in base64."""
    thread: str = ""
    reply_to: str = ""
    buttons: list[Object] = field(default_factory=list)


@dataclass(slots=True)
class Upload:
    """A file in a multipart form."""

    name: str
    data: bytes


Parameters = dict[str, str | Upload]


class FakeTelegram(FakePlatform):
    """Telegram with one bot. What people do are its methods; what they see is `posts`."""

    controls = FakePlatform.controls | {
        *("say", "edit", "press", "redeliver", "texts", "unacked", "other_poller", "all_posts"),
    }

    def __init__(
        self, port: int = 0, *, state: Path | None = None, tls: SSLContext | None = None
    ) -> None:
        super().__init__(port, state=state, tls=tls)
        self.token = TOKEN
        self.revoked = False
        self.me: Object = {
            "id": BOT_ID,
            "is_bot": True,
            "first_name": "Bullpen",
            "username": BOT_NAME,
            "can_join_groups": True,
            "can_read_all_group_messages": False,
            "has_topics_enabled": False,
        }
        self.chats: dict[str, Object] = {}
        self.blocked: set[str] = set()
        self.moved: dict[str, str] = {}
        self.topics: set[str] = set()
        """`chat/thread` of the topics that exist."""
        self.sent: list[Post] = []
        self.shown: list[tuple[str, str]] = []
        """Drafts and actions: the chat, and what people see."""
        self.answered: list[str] = []
        self.menu: list[Object] = []
        self.webhook = ""
        self.webhook_error = ""
        self.webhook_secret = ""
        self.webhook_answers: list[int] = []
        self.allowed: set[str] = set()
        """The kinds of updates that the bot last asked for; empty is all."""
        self.without: set[str] = set()
        """Methods, in lower case, that this server does not have."""
        self.conflict = ""
        self.confirmed: list[int] = []
        """The messages of the updates that were confirmed."""
        self._lock = threading.RLock()
        self._updates: list[tuple[int, Object]] = []
        self._by_message: dict[str, Object] = {}
        self._files: dict[str, tuple[str, bytes]] = {}
        self._refusals: list[tuple[str, Failed]] = []
        self._next_update = 500_000_000
        self._next_message = 100
        self._poll = 0
        self._last_poll: tuple[int, float] = (-1, -100.0)
        self._pulse = asyncio.Event()
        self._pusher: asyncio.Task[None] | None = None

    # What people do.

    def add_chat(self, chat: str, person: int = 0, *, kind: str = "", forum: bool = False) -> None:
        """Make a chat known to the bot; one with a negative id is a group."""
        with self._lock:
            if chat in self.chats:
                return
            if chat.startswith("-"):
                found: Object = {
                    "id": int(chat),
                    "type": kind or "supergroup",
                    "title": "The group",
                }
                if forum:
                    found["is_forum"] = True
            else:
                found = {
                    "id": int(chat),
                    "type": "private",
                    "first_name": f"Person {person or chat}",
                }
            self.chats[chat] = found
        self.remember({"chat": found})

    def say(
        self,
        chat: str,
        person: int,
        text: str,
        *,
        mention: bool = False,
        files: Sequence[tuple[str, str]] = (),
        thread: str = "",
        reply_to: str = "",
        at: int = 0,
        fields: Object | None = None,
    ) -> str:
        """A person writes; each file is a name and its content in base64. Returns the id."""
        self.add_chat(chat, person)
        entities: list[Object] = []
        if mention:
            name = f"@{BOT_NAME}"
            entities = [{"type": "mention", "offset": 0, "length": len(name)}]
            text = f"{name} {text}"
        first = ""
        for file in files or (None,):
            message = self._new_message(chat, person, thread, at)
            caption = text if not first else ""
            if file is not None:
                message["document"] = self._store_file(*file)
                if len(files) > 1:
                    message["media_group_id"] = f"album{first or message['message_id']}"
            if caption:
                message["caption" if file else "text"] = caption
                if entities:
                    message["caption_entities" if file else "entities"] = entities
            if reply_to:
                message["reply_to_message"] = self._original(chat, reply_to)
            message.update(fields or {})
            self.push({"message": message})
            first = first or str(message["message_id"])
        return first

    def edit(self, chat: str, message: str, text: str, at: int = 0) -> None:
        """A person changes the text of a message."""
        with self._lock:
            original = self._by_message[f"{chat}:{message}"]["message"]
            assert isinstance(original, dict)
            edited = {**original, "edit_date": at or int(time.time())}
            edited["caption" if "caption" in original else "text"] = text
        self.push({"edited_message": edited})

    def press(self, chat: str, person: int, message: str, value: str) -> str:
        """A person presses a button of a message; returns the id of the query."""
        with self._lock:
            number = f"{self._next_update}77"
            sender = {"id": person, "is_bot": False, "first_name": f"Person {person}"}
            self.add_chat(chat, person)
            shown: Object = {"message_id": int(message), "chat": self.chats[chat], "date": 0}
        query = {"id": number, "from": sender, "message": shown, "data": value}
        self.push({"callback_query": {**query, "chat_instance": "1"}})
        return number

    def block(self, chat: str, status: str = "kicked") -> None:
        """The bot is blocked in a private chat, or removed from a group."""
        with self._lock:
            self.blocked.add(chat)
        self._push_member(chat, status)

    def unblock(self, chat: str) -> None:
        """The bot is let in again."""
        with self._lock:
            self.blocked.discard(chat)
        self._push_member(chat, "member")

    def migrate(self, chat: str, to: str, *, quietly: bool = False) -> None:
        """A group becomes a supergroup with another id."""
        self.add_chat(to)
        with self._lock:
            self.moved[chat] = to
            old = {**self._new_message(chat, 1001), "migrate_to_chat_id": int(to)}
            new = {**self._new_message(to, 1001), "migrate_from_chat_id": int(chat)}
        if not quietly:
            self.push({"message": old})
            self.push({"message": new})

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

    def redeliver(self, chat: str, message: str) -> None:
        """Queue the update of a message again, as after a lost confirmation."""
        with self._lock:
            update = dict(self._by_message[f"{chat}:{message}"])
        del update["update_id"]
        self.push(update)

    # What they see, and what Telegram knows.

    def posts(self, chat: str) -> list[Post]:
        """The bot's messages in a chat."""
        with self._lock:
            return [each for each in self.sent if each.chat == chat]

    def all_posts(self) -> list[Object]:
        """All messages of the bot, as JSON."""
        with self._lock:
            return [asdict(each) for each in self.sent]

    def texts(self, chat: str) -> list[str]:
        """The texts of the bot's messages in a chat."""
        return [each.text for each in self.posts(chat) if not each.file]

    def unacked(self) -> list[int]:
        """The ids of the messages and the like whose updates are not confirmed."""
        with self._lock:
            return [_message_id(update) for _, update in self._updates]

    def refuse(
        self, code: int, description: str, method: str = "sendMessage", **parameters: object
    ) -> None:
        """Answer the next call of this method with an error."""
        with self._lock:
            self._refusals.append((method.lower(), Failed(code, description, **parameters)))

    def other_poller(self, on: bool = True) -> None:
        """Another process polls this bot all the time."""
        text = "terminated by other getUpdates request; make sure that only one bot instance is"
        self.conflict = f"Conflict: {text} running" if on else ""
        self._wake()

    def drop_connections(self) -> None:
        """Cut all connections."""
        self._loop.call_soon_threadsafe(self._cut)

    def go_away(self, seconds: float) -> None:
        """Be gone for so long."""
        self.vanish(seconds)

    # The server.

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_route("*", "/bot{token}/{method}", self._call)
        router.add_get("/file/bot{token}/{path:.+}", self._download)

    def recall(self, record: dict[str, object]) -> None:
        number, update, post = record.get("id"), record.get("update"), record.get("post")
        if isinstance(update, dict) and isinstance(number, int):
            self._updates.append((number, update))
            self._by_message.setdefault(_message_key(update), update)
            self._next_update = max(self._next_update, number + 1)
            self._next_message = max(self._next_message, _message_id(update) + 1)
        elif isinstance(chat := record.get("chat"), dict):
            self.chats[str(chat["id"])] = chat
        elif isinstance(post, dict):
            self.sent.append(Post(**post))
            self._next_message = max(self._next_message, int(post["id"]) + 1)
        elif isinstance(below := record.get("confirmed"), int):
            self._updates = [each for each in self._updates if each[0] >= below]
        elif isinstance(file := record.get("file"), list):
            self._files[file[0]] = (file[1], base64.b64decode(file[2]))

    def limited(self, request: web.Request, seconds: float) -> web.Response:
        wait = int(seconds)
        return Failed(429, f"Too Many Requests: retry after {wait}", retry_after=wait).answer()

    def failed(self, request: web.Request, status: int) -> web.Response:
        return Failed(status, "Internal Server Error").answer()

    async def _call(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != self.token or self.revoked:
            return Failed(401, "Unauthorized").answer()
        method = request.match_info["method"].lower()
        handler = getattr(self, f"_on_{method}", None)
        kind = method.removeprefix("send")
        if handler is None and kind in (
            "photo",
            "document",
            "video",
            "audio",
            "voice",
            "animation",
        ):
            handler = self._on_sendfile
        if handler is None or method in self.without:
            return Failed(404, "Not Found: method not found").answer()
        parameters = await _read_parameters(request)
        try:
            self._check_refusal(method)
            result = await handler(parameters, kind)
        except Failed as error:
            return error.answer()
        return web.json_response({"ok": True, "result": result})

    async def _download(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != self.token or self.revoked:
            return Failed(401, "Unauthorized").answer()
        _, _, file_id = request.match_info["path"].partition("/")
        if file_id not in self._files:
            return Failed(404, "Not Found").answer()
        return web.Response(body=self._files[file_id][1], content_type="application/octet-stream")

    async def _on_getme(self, parameters: Parameters, kind: str) -> object:
        return self.me

    async def _on_getwebhookinfo(self, parameters: Parameters, kind: str) -> object:
        with self._lock:
            info: Object = {
                "url": self.webhook,
                "has_custom_certificate": False,
                "pending_update_count": len(self._updates),
            }
            if self.webhook_error:
                info["last_error_message"] = self.webhook_error
                info["last_error_date"] = int(time.time())
        return info

    async def _on_setwebhook(self, parameters: Parameters, kind: str) -> object:
        self.webhook = _string(parameters, "url")
        self.webhook_secret = _string(parameters, "secret_token")
        self._allow(parameters)
        self._wake()
        if self._pusher is None:
            self._pusher = asyncio.create_task(self._push_updates())
        return True

    async def _on_deletewebhook(self, parameters: Parameters, kind: str) -> object:
        self.webhook = ""
        if _string(parameters, "drop_pending_updates") == "true":
            self._confirm(self._next_update)
        return True

    async def _on_getupdates(self, parameters: Parameters, kind: str) -> object:
        if self.webhook:
            raise Failed(
                409,
                "Conflict: can't use getUpdates method while webhook is active; "
                "use deleteWebhook to delete the webhook first",
            )
        offset = int(_string(parameters, "offset") or 0)
        limit = int(_string(parameters, "limit") or 100)
        timeout = min(50, int(_string(parameters, "timeout") or 0))
        now = self._loop.time()
        last_offset, last_start = self._last_poll
        if offset == last_offset and timeout < 3 and now < last_start + 3:
            timeout = 3
        if offset == last_offset and now < last_start + 0.5:
            limit = 1
        self._last_poll = (offset, now)
        self._allow(parameters)
        self._confirm(offset)
        batch = self._batch(limit)
        if not batch and timeout and not self.conflict:
            batch = await self._wait(limit, now + timeout)
        if self.conflict:
            raise Failed(409, self.conflict)
        return batch

    def _allow(self, parameters: Parameters) -> None:
        if kinds := _string(parameters, "allowed_updates"):
            self.allowed = set(json.loads(kinds))

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

    async def _on_getmycommands(self, parameters: Parameters, kind: str) -> object:
        return self.menu

    async def _on_setmycommands(self, parameters: Parameters, kind: str) -> object:
        self.menu = json.loads(_string(parameters, "commands"))
        return True

    async def _on_sendmessage(self, parameters: Parameters, kind: str) -> object:
        text = _string(parameters, "text")
        if not text.strip():
            raise Failed(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le")) // 2 > 4096:
            raise Failed(400, "Bad Request: message is too long")
        if "parse_mode" in parameters:
            raise Failed(400, "Bad Request: can't parse entities: nothing may be parsed")
        entities = json.loads(_string(parameters, "entities") or "[]")
        return self._post(parameters, text=text, entities=entities)

    async def _on_sendfile(self, parameters: Parameters, kind: str) -> object:
        upload = parameters.get(kind)
        if not isinstance(upload, Upload):
            raise Failed(400, f"Bad Request: there is no {kind} in the request")
        data = base64.b64encode(upload.data).decode()
        return self._post(parameters, file=upload.name, kind=kind, data=data)

    async def _on_sendmessagedraft(self, parameters: Parameters, kind: str) -> object:
        chat = self._chat(parameters)
        if chat.startswith("-") or not int(_string(parameters, "draft_id")):
            raise Failed(400, "Bad Request: TEXTDRAFT_PEER_INVALID")
        self._show(chat, _string(parameters, "text") or "Thinking…")
        return True

    async def _on_sendchataction(self, parameters: Parameters, kind: str) -> object:
        self._show(self._chat(parameters), _string(parameters, "action"))
        return True

    async def _on_answercallbackquery(self, parameters: Parameters, kind: str) -> object:
        self.answered.append(_string(parameters, "callback_query_id"))
        return True

    async def _on_getfile(self, parameters: Parameters, kind: str) -> object:
        file_id = _string(parameters, "file_id")
        if file_id not in self._files:
            raise Failed(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        data = self._files[file_id][1]
        if len(data) > 20 << 20:
            raise Failed(400, "Bad Request: file is too big")
        return {
            "file_id": file_id,
            "file_unique_id": f"u{file_id}",
            "file_size": len(data),
            "file_path": f"documents/{file_id}",
        }

    def _post(
        self,
        parameters: Parameters,
        *,
        text: str = "",
        entities: list[Object] | None = None,
        file: str = "",
        kind: str = "",
        data: str = "",
    ) -> Object:
        chat = self._chat(parameters)
        thread = _string(parameters, "message_thread_id")
        if thread and f"{chat}/{thread}" not in self.topics:
            raise Failed(400, "Bad Request: message thread not found")
        reply = json.loads(_string(parameters, "reply_parameters") or "{}")
        replied = str(reply.get("message_id", ""))
        if replied and f"{chat}:{replied}" not in self._by_message:
            if not reply.get("allow_sending_without_reply"):
                raise Failed(400, "Bad Request: message to be replied not found")
            replied = ""
        markup = json.loads(_string(parameters, "reply_markup") or "{}")
        buttons = [each for row in markup.get("inline_keyboard", []) for each in row]
        if any(len(str(each["callback_data"]).encode()) > 64 for each in buttons):
            raise Failed(400, "Bad Request: BUTTON_DATA_INVALID")
        with self._lock:
            post = Post(
                id=str(self._next_message),
                chat=chat,
                text=text,
                entities=entities or [],
                file=file,
                kind=kind,
                data=data,
                thread=thread,
                reply_to=replied,
                buttons=buttons,
            )
            self._next_message += 1
            self.sent.append(post)
        self.remember({"post": asdict(post)})
        return {
            "message_id": int(post.id),
            "from": self.me,
            "chat": self.chats[chat],
            "date": int(time.time()),
            **({"text": text} if text else {}),
        }

    def _chat(self, parameters: Parameters) -> str:
        chat = _string(parameters, "chat_id")
        if to := self.moved.get(chat):
            raise Failed(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                migrate_to_chat_id=int(to),
            )
        if chat in self.blocked:
            reason = (
                "bot was kicked from the supergroup chat"
                if chat.startswith("-")
                else "bot was blocked by the user"
            )
            raise Failed(403, f"Forbidden: {reason}")
        if chat not in self.chats:
            raise Failed(400, "Bad Request: chat not found")
        return chat

    def _show(self, chat: str, text: str) -> None:
        with self._lock:
            self.shown.append((chat, text))

    def _check_refusal(self, method: str) -> None:
        with self._lock:
            for each in self._refusals:
                if each[0] == method:
                    self._refusals.remove(each)
                    raise each[1]

    def _new_message(self, chat: str, person: int, thread: str = "", at: int = 0) -> Object:
        self.add_chat(chat, person)
        with self._lock:
            number = self._next_message
            self._next_message += 1
            message: Object = {
                "message_id": number,
                "from": {"id": person, "is_bot": False, "first_name": f"Person {person}"},
                "chat": self.chats[chat],
                "date": at or int(time.time()),
            }
            if thread:
                self.topics.add(f"{chat}/{thread}")
                message |= {"message_thread_id": int(thread), "is_topic_message": True}
        return message

    def _original(self, chat: str, message: str) -> Object:
        if (update := self._by_message.get(f"{chat}:{message}")) is not None:
            original = update["message"]
            assert isinstance(original, dict)
            return original
        return {"message_id": int(message), "from": self.me, "chat": self.chats[chat], "date": 1}

    def _push_member(self, chat: str, status: str) -> None:
        self.add_chat(chat)
        member = {"status": status, "user": self.me}
        sender = {"id": 1001, "is_bot": False, "first_name": "Person 1001"}
        update = {"chat": self.chats[chat], "from": sender, "date": int(time.time())}
        old = {"status": "member", "user": self.me}
        self.push({"my_chat_member": {**update, "old_chat_member": old, "new_chat_member": member}})

    def _store_file(self, name: str, content: str) -> Object:
        with self._lock:
            file_id = f"file{len(self._files) + 1}"
            self._files[file_id] = (name, base64.b64decode(content))
        self.remember({"file": [file_id, name, content]})
        size = len(self._files[file_id][1])
        return {
            "file_id": file_id,
            "file_unique_id": f"u{file_id}",
            "file_name": name,
            "file_size": size,
        }

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
    message, chat = update.get("message"), _chat(update)
    if isinstance(message, dict) and isinstance(chat, dict) and "id" in chat:
        return f"{chat['id']}:{message['message_id']}"
    return f"update:{update['update_id']}"


def _message_id(update: Object) -> int:
    message = update.get("message")
    number = message.get("message_id") if isinstance(message, dict) else None
    return number if isinstance(number, int) else NO_MESSAGE


def _chat(update: Object) -> object:
    message = update.get("message")
    return message.get("chat") if isinstance(message, dict) else None


def _string(parameters: Parameters, name: str) -> str:
    value = parameters.get(name, "")
    assert isinstance(value, str), f"{name} is a file"
    return value


async def _read_parameters(request: web.Request) -> Parameters:
    """The parameters of a form. The body was read already, so multipart is taken apart here."""
    parameters: Parameters = dict(request.query)
    body = await request.read()
    if request.content_type == "application/x-www-form-urlencoded":
        parameters.update(parse_qsl(body.decode(), keep_blank_values=True))
    elif request.content_type == "multipart/form-data":
        boundary = request.headers["Content-Type"].partition("boundary=")[2].strip('"')
        for part in body.split(f"--{boundary}".encode())[1:-1]:
            head, _, content = part[2:-2].partition(b"\r\n\r\n")
            names = dict(
                each.strip().partition("=")[::2]
                for each in head.decode().splitlines()[0].split(";")[1:]
            )
            name = names["name"].strip('"')
            if "filename" in names:
                parameters[name] = Upload(names["filename"].strip('"'), content)
            else:
                parameters[name] = content.decode()
    return parameters


class TelegramHarness:
    """Telegram as the tests of all channels drive it."""

    channel = "telegram"

    def __init__(self, fake: FakeTelegram) -> None:
        self.fake = fake
        self._gone = False
        fake.add_chat(self.chat(direct=False))
        for number in range(1, PEOPLE + 1):
            fake.add_chat(self.direct(number))

    def settings(self) -> dict[str, str]:
        """The settings that point the client at the fake."""
        return {"bot_token": TOKEN, "api_url": self.fake.url, "transport": "poll"}

    def direct(self, number: int) -> str:
        """The direct chat of a person."""
        return self.person(number)

    def chat(self, direct: bool) -> str:
        """The direct chat of the first person, or a group."""
        return self.person(1) if direct else "-1001000000001"

    def person(self, number: int) -> str:
        """The id of a person, which is also the id of their direct chat."""
        return str(1000 + number)

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
        mention = mention and chat.startswith("-")
        encoded = [(name, base64.b64encode(data).decode()) for name, data in files]
        return self.fake.say(chat, int(person), text, mention=mention, files=encoded, thread=thread)

    def redeliver(self, message_id: str) -> None:
        """Queue a message again."""
        for key in list(self.fake._by_message):
            chat, _, number = key.partition(":")
            if number == message_id and chat != "update":
                self.fake.redeliver(chat, message_id)

    def edit(self, chat: str, message_id: str, text: str) -> None:
        """The author changes the text of a message."""
        self.fake.edit(chat, message_id, text)

    def delete(self, chat: str, message_id: str) -> None:
        """The author deletes a message; Telegram does not tell bots."""

    def press(self, chat: str, person: str, message_id: str, value: str) -> None:
        """A person presses a button."""
        self.fake.press(chat, int(person), message_id, value)

    def posts(self, chat: str) -> list[str]:
        """The texts of the bot in a chat, as people see them."""
        return [each.replace("\N{WORD JOINER}", "") for each in self.fake.texts(chat)]

    def parts(self, chat: str) -> list[Post]:
        """All messages of the bot in a chat."""
        return self.fake.posts(chat)

    def fail_next(self, fault: str, n: int = 1, *, seconds: float = 1.0) -> None:
        """Do this on the next `n` sends of a text."""
        match fault:
            case "refuse":
                self.fake.vanish(seconds)
            case "error500":
                self.fake.fail(Fault.ERROR, SEND, times=n)
            case "taken_then_500":
                self.fake.fail(Fault.ERROR, SEND, times=n, taken=True)
            case "rate_limit":
                self.fake.fail(Fault.LIMIT, SEND, times=n, seconds=seconds)
            case "refused":
                for _ in range(n):
                    self.fake.refuse(400, "Bad Request: message is too long")
            case "revoked":
                self.fake.revoked = True
            case _:
                self.fake.fail(Fault(fault), SEND, times=n)

    def heal(self) -> None:
        """End what `fail_next` began."""
        self.fake.revoked = False
        self.fake.heal()

    def offline(self) -> None:
        """The platform is gone; people go on writing."""
        if not self._gone:
            self._gone = True
            self.fake.run(self.fake._close_port())

    def online(self) -> None:
        """The platform is back."""
        if self._gone:
            self._gone = False
            self.fake.run(self.fake._open_port())

    def is_acked(self, message_id: str) -> bool:
        """Whether the platform will not send a message again."""
        return int(message_id) not in self.fake.unacked()

    def lookup_off(self) -> None:
        """Telegram has no look-up."""

    def lookup_on(self) -> None:
        """Telegram has no look-up."""

    def progress(self, chat: str) -> list[str]:
        """The drafts and actions that people have seen in a chat."""
        return [text for where, text in self.fake.shown if where == chat]


if __name__ == "__main__":
    serve(FakeTelegram)
