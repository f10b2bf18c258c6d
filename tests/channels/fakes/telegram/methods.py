"""The methods of Telegram's Bot API."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from dataclasses import asdict
from typing import Unpack

from aiohttp import web

from tests.channels.fakes.base import Options
from tests.channels.fakes.telegram.chats import TelegramPost
from tests.channels.fakes.telegram.updates import Updates
from tests.channels.fakes.telegram.wire import (
    Failed,
    Object,
    Parameters,
    Upload,
    read_parameters,
    string,
)

FILES = ("photo", "document", "video", "audio", "voice", "animation")
"""What is sent as a file, by `sendPhoto` and so on."""


class Methods(Updates):
    """What the bot calls; `_on_sendmessage` is `sendMessage`."""

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.shown: list[tuple[str, str]] = []
        """Drafts and actions: the chat, and what people see."""
        self.answered: list[str] = []
        self.menu: list[Object] = []
        self.without: set[str] = set()
        """Methods, in lower case, that this server does not have."""
        self._refusals: list[tuple[str, Failed]] = []

    def refuse(
        self, code: int, description: str, method: str = "sendMessage", **parameters: object
    ) -> None:
        """Answer the next call of this method with an error."""
        with self._lock:
            self._refusals.append((method.lower(), Failed(code, description, **parameters)))

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
        if handler is None and kind in FILES:
            handler = self._on_sendfile
        if handler is None or method in self.without:
            return Failed(404, "Not Found: method not found").answer()
        parameters = await read_parameters(request)
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
        self.webhook = string(parameters, "url")
        self.webhook_secret = string(parameters, "secret_token")
        self._allow(parameters)
        self._wake()
        if self._pusher is None:
            self._pusher = asyncio.create_task(self._push_updates())
        return True

    async def _on_deletewebhook(self, parameters: Parameters, kind: str) -> object:
        self.webhook = ""
        if string(parameters, "drop_pending_updates") == "true":
            self._confirm(self._next_update)
        return True

    async def _on_getupdates(self, parameters: Parameters, kind: str) -> object:
        if self.webhook:
            raise Failed(
                409,
                "Conflict: can't use getUpdates method while webhook is active; "
                "use deleteWebhook to delete the webhook first",
            )
        offset = int(string(parameters, "offset") or 0)
        limit = int(string(parameters, "limit") or 100)
        timeout = min(50, int(string(parameters, "timeout") or 0))
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
        if kinds := string(parameters, "allowed_updates"):
            self.allowed = set(json.loads(kinds))

    async def _on_getmycommands(self, parameters: Parameters, kind: str) -> object:
        return self.menu

    async def _on_setmycommands(self, parameters: Parameters, kind: str) -> object:
        self.menu = json.loads(string(parameters, "commands"))
        return True

    async def _on_sendmessage(self, parameters: Parameters, kind: str) -> object:
        text = string(parameters, "text")
        if not text.strip():
            raise Failed(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le")) // 2 > 4096:
            raise Failed(400, "Bad Request: message is too long")
        if "parse_mode" in parameters:
            raise Failed(400, "Bad Request: can't parse entities: nothing may be parsed")
        entities = json.loads(string(parameters, "entities") or "[]")
        return self._post(parameters, text=text, entities=entities)

    async def _on_sendfile(self, parameters: Parameters, kind: str) -> object:
        upload = parameters.get(kind)
        if not isinstance(upload, Upload):
            raise Failed(400, f"Bad Request: there is no {kind} in the request")
        data = base64.b64encode(upload.data).decode()
        return self._post(parameters, file=upload.name, kind=kind, data=data)

    async def _on_sendmessagedraft(self, parameters: Parameters, kind: str) -> object:
        chat = self._chat(parameters)
        if chat.startswith("-") or not int(string(parameters, "draft_id")):
            raise Failed(400, "Bad Request: TEXTDRAFT_PEER_INVALID")
        self._show(chat, string(parameters, "text") or "Thinking…")
        return True

    async def _on_sendchataction(self, parameters: Parameters, kind: str) -> object:
        self._show(self._chat(parameters), string(parameters, "action"))
        return True

    async def _on_answercallbackquery(self, parameters: Parameters, kind: str) -> object:
        self.answered.append(string(parameters, "callback_query_id"))
        return True

    async def _on_getfile(self, parameters: Parameters, kind: str) -> object:
        file_id = string(parameters, "file_id")
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
        thread = string(parameters, "message_thread_id")
        if thread and f"{chat}/{thread}" not in self.topics:
            raise Failed(400, "Bad Request: message thread not found")
        reply = json.loads(string(parameters, "reply_parameters") or "{}")
        replied = str(reply.get("message_id", ""))
        if replied and f"{chat}:{replied}" not in self._by_message:
            if not reply.get("allow_sending_without_reply"):
                raise Failed(400, "Bad Request: message to be replied not found")
            replied = ""
        markup = json.loads(string(parameters, "reply_markup") or "{}")
        buttons = [each for row in markup.get("inline_keyboard", []) for each in row]
        if any(len(str(each["callback_data"]).encode()) > 64 for each in buttons):
            raise Failed(400, "Bad Request: BUTTON_DATA_INVALID")
        with self._lock:
            post = TelegramPost(
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
        chat = string(parameters, "chat_id")
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
