"""The REST interface of Discord, with its limits, and the files of messages."""

from __future__ import annotations

import json
import time
from typing import Unpack

from aiohttp import BodyPartReader, MultipartReader, StreamReader, web

from tests.channels.fakes.base import Options
from tests.channels.fakes.discord.chats import APPLICATION, Json
from tests.channels.fakes.discord.people import People

NONCE_SECONDS = 300.0
MAX_CHARACTERS = 2_000
MAX_FILE_BYTES = 10 << 20

STATUS_OF = {50007: 403, 50001: 403, 50013: 403, 160005: 403, 10003: 404, 50083: 400}
SAYS = {
    50007: "Cannot send messages to this user",
    50001: "Missing Access",
    50013: "Missing Permissions",
    160005: "Thread is locked",
    10003: "Unknown Channel",
    50083: "Thread is archived",
}


class Rest(People):
    """The endpoints that the bot calls."""

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.interactions_url = ""
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

    def _refused(self, request: web.Request) -> web.Response | None:
        if request.headers.get("Authorization") != f"Bot {self.token}":
            return _json({"message": "401: Unauthorized", "code": 0}, 401)
        return None

    async def _get_me(self, request: web.Request) -> web.Response:
        return self._refused(request) or _json(self._me())

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
