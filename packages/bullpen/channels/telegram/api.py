"""Calls of Telegram's Bot API by python-telegram-bot, and the meaning of each failure.

Answers stay raw, because a part that was sent would count as unknown if the SDK could not read the
answer. The token is part of every URL, so no error keeps its cause.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import quote, urlsplit

import httpx
from telegram import Bot
from telegram._utils.types import ODVInput
from telegram.error import TelegramError
from telegram.request import BaseRequest, HTTPXRequest, RequestData

from bullpen.channels.failures import (
    ChannelDown,
    ChatMoved,
    NotSent,
    OutcomeUnknown,
    RateLimited,
    Refused,
    SendFailed,
    Undeliverable,
)
from bullpen.channels.platform import Download

CONNECT_SECONDS = 10.0
READ_SECONDS = 25.0
POLL_MARGIN_SECONDS = 10.0
UPLOAD_SECONDS = 25.0
KEEP_ALIVE_SECONDS = 1.5
"""Telegram closes idle connections; a request on one that just closed has an unknown outcome."""
DEFAULT_RETRY_SECONDS = 30.0
REASON_CHARS = 200

_UNREACHABLE = (
    "chat not found",
    "user not found",
    "message thread not found",
    "group chat was deactivated",
    "no rights to send",
    "not enough rights",
    "need administrator rights",
    "peer_id_invalid",
    "user_deactivated",
    "chat_write_forbidden",
    "chat_restricted",
    "chat_admin_required",
    "topic_closed",
    "topic_deleted",
)
"""Parts of descriptions of a 400 which are about the chat, and not about the message."""

_NOT_CONNECTED = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)


class ApiError(TelegramError):
    """An answer with an error. The SDK's own classes do not keep the status."""

    def __init__(self, status: int, payload: bytes) -> None:
        self.status = status
        self.definite = False
        """Whether it is an answer of the Bot API, and not a page of something in between."""
        self.retry_seconds = DEFAULT_RETRY_SECONDS
        self.moved_to = ""
        description = ""
        with suppress(ValueError):
            self._read(answer := _read_object(payload))
            description = str(answer.get("description", ""))
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:
            phrase = "unknown status"
        super().__init__("")
        # The SDK would write it in lower case, the token as well.
        self.message = description.removeprefix("Bad Request: ") or f"{phrase} ({status})"

    def _read(self, answer: dict[str, object]) -> None:
        self.definite = answer.get("ok") is False
        parameters = answer.get("parameters")
        if isinstance(parameters, dict):
            if isinstance(seconds := parameters.get("retry_after"), int | float):
                self.retry_seconds = float(seconds)
            self.moved_to = str(parameters.get("migrate_to_chat_id", ""))


class _Request(HTTPXRequest):
    """Requests whose errors keep their status, and whose answers are never logged."""

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: ODVInput[float] = BaseRequest.DEFAULT_NONE,
        write_timeout: ODVInput[float] = BaseRequest.DEFAULT_NONE,
        connect_timeout: ODVInput[float] = BaseRequest.DEFAULT_NONE,
        pool_timeout: ODVInput[float] = BaseRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        status, payload = await super().do_request(
            url,
            method,
            request_data,
            read_timeout,
            write_timeout,
            connect_timeout,
            pool_timeout,
        )
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise ApiError(status, payload)
        return status, payload

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, object]:
        try:
            answer = _read_object(payload)
        except ValueError:
            raise TelegramError("the answer is not JSON") from None
        if "result" not in answer:
            raise TelegramError("the answer has no result")
        return answer


class BotApi(Bot):
    """The Bot API of one token: one object polls, the other sends."""

    def __init__(self, token: str, base_url: str) -> None:
        base_url = base_url.rstrip("/")
        self._secret = token
        self._files = f"{base_url}/file/bot{token}/"
        super().__init__(
            token,
            base_url=f"{base_url}/bot",
            base_file_url=f"{base_url}/file/bot",
            request=_make_request(64),
            get_updates_request=_make_request(1),
        )

    async def call(self, method: str, /, **parameters: object) -> object:
        """The result of a method. Raises the errors of `failures` and nothing else.

        `timeout`, the time of a long poll, is added to the time in which Telegram must answer.
        """
        poll = parameters.get("timeout")
        seconds = poll + POLL_MARGIN_SECONDS if isinstance(poll, int) else READ_SECONDS
        try:
            result: object = await self._post(method, parameters, read_timeout=seconds)
        except TelegramError as error:
            raise self._explain(error) from None
        return result

    def download(self, path: str) -> Download:
        """How a file is fetched by its path. The URL has the token."""
        server = urlsplit(self._files)
        host = f"http://{server.netloc}" if server.scheme == "http" else server.netloc
        return Download(url=self._files + quote(path), hosts=(host,))

    async def close_connections(self) -> None:
        """Close all connections."""
        for each in self._request:
            await each.shutdown()

    def _explain(self, error: TelegramError) -> SendFailed | ChannelDown:
        reason = " ".join(str(error).replace(self._secret, "…").split())[:REASON_CHARS]
        if isinstance(error, ApiError):
            return _explain_answer(error, reason)
        if isinstance(error.__cause__, _NOT_CONNECTED):
            return NotSent(f"Telegram is not reachable: {reason}")
        return OutcomeUnknown(f"no answer of Telegram: {reason}")


def silence_loggers() -> None:
    """Keep URLs, which have the token, and texts out of the log."""
    for name in ("httpx", "httpcore", "telegram"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _explain_answer(error: ApiError, reason: str) -> SendFailed | ChannelDown:
    code = str(error.status)
    if error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return Refused("the file is too large for Telegram", code)
    if not error.definite or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return OutcomeUnknown(f"no answer of Telegram: {reason}", code)
    if error.moved_to:
        return ChatMoved(error.moved_to)
    match error.status:
        case HTTPStatus.TOO_MANY_REQUESTS:
            return RateLimited(error.retry_seconds)
        case HTTPStatus.NOT_FOUND if "method" in reason:
            return Refused(reason, code)
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.NOT_FOUND:
            return ChannelDown(
                "token_refused",
                f"Telegram does not accept the bot token ({reason})",
                "Get the token from @BotFather with /token, and set it again.",
            )
        case HTTPStatus.CONFLICT:
            return _explain_conflict(reason)
    if error.status == HTTPStatus.FORBIDDEN or _is_about_chat(reason):
        return Undeliverable(reason, code)
    return Refused(reason, code)


def _is_about_chat(reason: str) -> bool:
    lower = reason.lower()
    return any(each in lower for each in _UNREACHABLE)


def _explain_conflict(reason: str) -> ChannelDown:
    if "webhook" in reason.lower():
        return ChannelDown(
            "webhook_set",
            "a webhook receives the updates of this bot",
            "Another program uses the bot. Create a bot for Bullpen with @BotFather, or take the "
            "bot back with /revoke there and set its new token.",
        )
    return ChannelDown(
        "conflict",
        "another process polls the updates of this bot",
        "Stop the other process, or create another bot with @BotFather.",
    )


def _read_object(payload: bytes) -> dict[str, object]:
    found: object = json.loads(payload)
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def _make_request(connections: int) -> HTTPXRequest:
    limits = httpx.Limits(max_connections=connections, keepalive_expiry=KEEP_ALIVE_SECONDS)
    return _Request(
        read_timeout=READ_SECONDS,
        write_timeout=CONNECT_SECONDS,
        connect_timeout=CONNECT_SECONDS,
        pool_timeout=CONNECT_SECONDS,
        media_write_timeout=UPLOAD_SECONDS,
        httpx_kwargs={"limits": limits},
    )
