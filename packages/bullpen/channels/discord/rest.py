"""The REST interface of Discord by its SDK, without the SDK's retries and sleeps.

A 5xx ends a request at once, a rate limit is an error, and each failure is one of `failures`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import BinaryIO

import aiohttp
import discord
from discord.http import HTTPClient, Ratelimit, Route
from yarl import URL

from bullpen.channels.discord.events import Data, object_of, objects_of, text_of
from bullpen.channels.failures import (
    ChannelDown,
    NotSent,
    OutcomeUnknown,
    RateLimited,
    Refused,
    SendFailed,
    Undeliverable,
)
from bullpen.core.clock import SECOND, Clock

MIN_RATE_WAIT = 0.001
"""The SDK sleeps up to this time at a rate limit, and raises above it."""
CLOUDFLARE_SECONDS = 60.0
RESET_BY_PEER = (54, 10054)
"""The codes of macOS and Windows on which the SDK repeats a request."""
PAGE = 100
MAX_PAGES = 20
MAX_READ_WAIT_SECONDS = 10.0
REASON_CHARS = 200

THREAD_CLOSED = frozenset({50083, 160005})
NO_WAY_IN = frozenset({10003, 10013, 50001, 50007, 50013, 50278})
"""No such channel or person, no access, no permission, or the person takes no messages."""


def token_hint(account: str) -> str:
    """How a person replaces the token of an account."""
    return (
        "Copy a token from discord.com/developers/applications, Bot, Reset Token; "
        f"then run `bullpen config set {account}.bot_token`."
    )


class NoAnswer(ConnectionError):
    """Discord answered 5xx, or the connection broke: nothing says what became of the request."""


class ThreadClosed(Undeliverable):
    """The thread is locked or archived."""


class Limits:
    """The rate limits that Discord has announced, by method and path."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self._account_until = 0.0

    def note(self, method: str, url: URL, status: int, headers: Mapping[str, str]) -> None:
        """Read the headers of an answer."""
        now = self._clock.monotonic()
        if status == 429:
            wait = _seconds(headers.get("Retry-After")) or CLOUDFLARE_SECONDS
            # Without Via, Cloudflare refuses the address of this machine.
            if "X-RateLimit-Global" in headers or "Via" not in headers:
                self._account_until = now + wait * SECOND
            else:
                self._until[f"{method} {url.path}"] = now + wait * SECOND
        elif headers.get("X-RateLimit-Remaining") == "0":
            wait = _seconds(headers.get("X-RateLimit-Reset-After"))
            self._until = {key: until for key, until in self._until.items() if until > now}
            self._until[f"{method} {url.path}"] = now + wait * SECOND

    @property
    def account_seconds(self) -> float:
        """How long the whole account waits."""
        return max(0.0, (self._account_until - self._clock.monotonic()) / SECOND)

    def seconds(self, method: str, url: str) -> float:
        """How long a request waits."""
        until = self._until.get(f"{method} {URL(url).path}", 0.0)
        return max(0.0, self.account_seconds, (until - self._clock.monotonic()) / SECOND)


class _Bucket(Ratelimit):
    """What the SDK waits for before a request: nothing, since `Limits` decides.

    The SDK's own would refuse each request of a window but the first, whatever is left of it.
    """

    async def acquire(self) -> None:
        """Let a request pass."""
        self._last_request = self._loop.time()
        self.outgoing += 1

    async def __aexit__(self, *error: object) -> None:
        self.outgoing -= 1


def _id(message: Data) -> int:
    return int(text_of(message, "id") or 0)


def _seconds(value: str | None) -> float:
    try:
        return max(0.0, float(value or 0))
    except ValueError:
        return 0.0


class Rest(HTTPClient):
    """The SDK's client of the REST interface, at a URL of our own."""

    def __init__(self, api_url: str, account: str, limits: Limits) -> None:
        super().__init__(asyncio.get_running_loop(), http_trace=_tracing(limits))
        # The argument of the constructor is at least 30 s.
        self.max_ratelimit_timeout = MIN_RATE_WAIT
        self.limits = limits
        self._api_url = api_url.rstrip("/")
        self._account = account

    def get_ratelimit(self, key: str) -> Ratelimit:
        """The bucket of a route."""
        if key not in self._buckets:
            self._buckets[key] = _Bucket(self.max_ratelimit_timeout)
            self._try_clear_expired_ratelimits()
        return self._buckets[key]

    async def request(self, route: Route, **options: object) -> object:
        """Send a request, unless Discord has asked to wait. Interactions have no limit."""
        route.url = self._api_url + route.url.removeprefix(Route.BASE)
        wait = 0.0 if route.webhook_id else self.limits.seconds(route.method, route.url)
        if wait > 0:
            raise discord.RateLimited(wait)
        return await super().request(route, **options)  # type: ignore[arg-type]

    async def get(self, path: str) -> Data:
        """An object of JSON."""
        return object_of(await self.request(Route("GET", path)))

    async def history(
        self, chat: str, after: int, limit: int, wanted: Callable[[Data], bool]
    ) -> list[Data]:
        """At most `limit` messages after an id, oldest first."""
        found: list[Data] = []
        for number in range(MAX_PAGES):
            try:
                answer: object = await self.logs_from(chat, PAGE, after=str(after))
            except discord.RateLimited as error:
                if not number or error.retry_after > MAX_READ_WAIT_SECONDS:
                    raise
                await asyncio.sleep(error.retry_after)
                continue
            page = sorted(objects_of({"page": answer}, "page"), key=_id)
            found += filter(wanted, page)
            if len(page) < PAGE or len(found) >= limit:
                break
            after = _id(page[-1])
        return found[:limit]

    async def create_message(
        self, chat: str, body: Data, file: tuple[str, BinaryIO] | None = None
    ) -> str:
        """Post a message; returns its id."""
        route = Route("POST", "/channels/{channel_id}/messages", channel_id=chat)
        if file is None:
            answer = await self.request(route, json=body)
        else:
            whole = {**body, "attachments": [{"id": 0, "filename": file[0]}]}
            part = {"name": "files[0]", "value": file[1], "filename": file[0]}
            answer = await self.request(
                route,
                form=[
                    {"name": "payload_json", "value": json.dumps(whole)},
                    {**part, "content_type": "application/octet-stream"},
                ],
            )
        message = text_of(object_of(answer), "id")
        if not message:
            raise OutcomeUnknown("Discord answered with something other than a message")
        return message

    async def answer_interaction(self, interaction: str, token: str, answer: Data) -> None:
        """Answer an interaction for the first time."""
        route = Route(
            "POST",
            "/interactions/{webhook_id}/{webhook_token}/callback",
            webhook_id=interaction,
            webhook_token=token,
        )
        await self.request(route, json=answer)

    async def delete_interaction_answer(self, application: str, token: str) -> None:
        """Delete the first answer to an interaction."""
        route = Route(
            "DELETE",
            "/webhooks/{webhook_id}/{webhook_token}/messages/@original",
            webhook_id=application,
            webhook_token=token,
        )
        await self.request(route)

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Raises the errors of `failures`: what a failed send means, by its cause."""
        try:
            yield
        except discord.RateLimited as error:
            account = self.limits.account_seconds
            raise RateLimited(max(error.retry_after, account), account=account > 0) from None
        except discord.HTTPException as error:
            raise self._refusal(error) from error
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotSent(f"Discord cannot be reached ({type(error).__name__})") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = str(error) if isinstance(error, NoAnswer) else type(error).__name__
            raise OutcomeUnknown(f"the answer of Discord is missing ({reason})") from error

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raises `ChannelDown`, `RateLimited`, or a `ConnectionError`."""
        try:
            with self.sending():
                yield
        except RateLimited:
            raise
        except SendFailed as error:
            raise ConnectionError(str(error)) from error

    def _refusal(self, error: discord.HTTPException) -> SendFailed | ChannelDown:
        status, code = error.status, error.code
        reason = " ".join(error.text.split())[:REASON_CHARS]
        if status == 401:
            hint = token_hint(self._account)
            return ChannelDown("token_invalid", "Discord refused the bot token", hint)
        if status == 429:  # Cloudflare
            return RateLimited(self.limits.account_seconds or CLOUDFLARE_SECONDS, account=True)
        if code in THREAD_CLOSED:
            return ThreadClosed("the thread is locked or archived", str(code))
        if code in NO_WAY_IN or (code and status == 403):
            return Undeliverable(reason, str(code))
        if code or status == 413:
            return Refused(reason if code else "it is too large", str(code or status))
        return OutcomeUnknown(f"something other than Discord answered {status}")


def _tracing(limits: Limits) -> aiohttp.TraceConfig:
    """Raises before the SDK repeats a request, and reads the rate limits."""

    async def ended(
        session: aiohttp.ClientSession,
        context: SimpleNamespace,
        params: aiohttp.TraceRequestEndParams,
    ) -> None:
        status = params.response.status
        limits.note(params.method, params.url, status, params.response.headers)
        if status >= 500:
            raise NoAnswer(f"Discord answered {status}")

    async def failed(
        session: aiohttp.ClientSession,
        context: SimpleNamespace,
        params: aiohttp.TraceRequestExceptionParams,
    ) -> None:
        error = params.exception
        if isinstance(error, OSError) and error.errno in RESET_BY_PEER:
            raise NoAnswer("the connection was reset") from error

    trace = aiohttp.TraceConfig()
    trace.on_request_end.append(ended)
    trace.on_request_exception.append(failed)
    return trace
