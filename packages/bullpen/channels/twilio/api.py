"""Twilio's API by its SDK, which blocks and therefore runs in threads."""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import urlsplit

import requests
from twilio.http.http_client import TwilioHttpClient
from twilio.rest import Client
from twilio.rest.api.v2010.account.message import MessageInstance

from bullpen.channels.failures import NotSent, OutcomeUnknown, RateLimited
from bullpen.channels.platform import ChannelContext, Download
from bullpen.channels.twilio.errors import failure
from bullpen.core.clock import SECOND

API_SECONDS = 20.0
MAX_CALLS = 16
PAGE_SIZE = 1000
NEWEST = 50
DEFAULT_URL = "https://api.twilio.com"
FILE_HOSTS = (".twilio.com", ".twiliocdn.com")
"""Twilio redirects from its API to these, without credentials."""

_SECONDS = re.compile(r"\d{1,6}(\.\d+)?")

Result = TypeVar("Result")


class TwilioApi:
    """The API of one account."""

    def __init__(self, context: ChannelContext) -> None:
        setting = context.setting
        self._context = context
        self.account_sid = setting("account_sid").strip()
        key, secret = setting("api_key").strip(), setting("api_secret").strip()
        token = setting("auth_token").strip()
        self._login = (key, secret) if key and secret else (self.account_sid, token)
        self.ahead_ms = 0
        """How far the clock of this machine is ahead of Twilio's."""
        self._threads = ThreadPoolExecutor(MAX_CALLS, f"{context.account}-api")
        for name in ("twilio.http_client", "urllib3"):
            # They log URLs and parameters, which have phone numbers.
            logging.getLogger(name).setLevel(logging.WARNING)
        self._http = TwilioHttpClient(
            timeout=API_SECONDS, request_hooks={"response": [self._on_answer]}
        )
        # A server may close an idle connection at the moment of the next request, whose outcome
        # is then unknown. So each request has a connection of its own.
        self._http.session.headers["Connection"] = "close"
        self._url = (setting("api_url").strip() or DEFAULT_URL).rstrip("/")
        self.client = self._make_client(*self._login)
        self.token_client = self._make_client(self.account_sid, token)

    async def call(self, call: Callable[[], Result]) -> Result:
        """Call the SDK in a thread; raises only errors of `failures`."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except Exception as error:
            raise failure(error, self._context.account) from None

    async def read(self, call: Callable[[], Result]) -> Result:
        """Call the SDK for something other than a message; without an answer, an OSError."""
        try:
            return await self.call(call)
        except RateLimited:
            raise
        except (NotSent, OutcomeUnknown) as error:
            raise ConnectionError(str(error)) from None

    async def create(self, **fields: object) -> str:
        """Create a message; returns its SID."""

        def create() -> str:
            sid: object = self.client.messages.create(**fields).sid
            if not sid or not isinstance(sid, str):
                raise ValueError("an answer without a SID")
            return sid

        return await self.call(create)

    async def probe(self, number: str) -> None:
        """Read one message to a number, which needs what everything else needs."""
        await self.read(lambda: self.client.messages.page(to=number, page_size=1))

    async def received(self, number: str, since: int) -> list[MessageInstance]:
        """The messages to a number since a time of this machine, oldest first."""
        after = self._date(since)
        listed = await self.read(
            lambda: self.client.messages.list(to=number, date_sent_after=after, page_size=PAGE_SIZE)
        )
        inbound = [each for each in reversed(listed) if each.direction == "inbound"]
        return sorted(inbound, key=sent_at)  # keeps the order of the list within a second

    async def sent(self, to: str, number: str, since: int) -> list[MessageInstance]:
        """The messages from a number to a person since a time of this machine, newest first."""
        after = self._date(since)
        pair = {"to": to, "from_": number}
        messages = self.client.messages
        dated = await self.read(lambda: messages.list(**pair, date_sent_after=after))
        # A queued message has no date of sending yet.
        newest = await self.read(lambda: messages.list(**pair, limit=NEWEST))
        found = {str(each.sid): each for each in (*dated, *newest)}
        since -= self.ahead_ms
        new = [each for each in found.values() if created_at(each) >= since]
        return sorted(new, key=created_at, reverse=True)

    async def form_of(self, message: MessageInstance) -> dict[str, str]:
        """A message of the list in the form of its webhook."""
        form = {
            "MessageSid": str(message.sid),
            "From": str(message.from_),
            "To": str(message.to),
            "Body": str(message.body or ""),
            "NumMedia": str(message.num_media or 0),
        }
        if form["NumMedia"] != "0":
            for index, each in enumerate(await self.read(lambda: message.media.list())):
                form[f"MediaUrl{index}"] = f"{self._url}{str(each.uri).removesuffix('.json')}"
                form[f"MediaContentType{index}"] = str(each.content_type)
        return form

    async def show_typing(self, sid: str) -> None:
        """Show that the bot writes, below a message of a person."""
        indicators = self.client.messaging.v2.typing_indicator
        await self.read(lambda: indicators.create(channel="whatsapp", message_id=sid))

    def download(self, message: str, media: str) -> Download:
        """How a file is fetched. The URL is made here: no other host gets the credentials."""
        login = base64.b64encode(":".join(self._login).encode()).decode()
        path = f"/2010-04-01/Accounts/{self.account_sid}/Messages/{message}/Media/{media}"
        return Download(
            url=f"{self._url}{path}",
            headers={"Authorization": f"Basic {login}"},
            hosts=(_pattern(self._url), *FILE_HOSTS),
        )

    def close(self) -> None:
        """Close all connections; a call that is under way ends in its thread."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._http.session.close()

    def _make_client(self, login: str, password: str) -> Client:
        # Otherwise the SDK reads the environment.
        nothing = {"TWILIO_EDGE": "", "TWILIO_REGION": ""}
        client = Client(
            login,
            password,
            account_sid=self.account_sid,
            http_client=self._http,
            environment=nothing,
        )
        client.api.base_url = self._url
        client.messaging.base_url = self._url.replace("//api.", "//messaging.", 1)
        return client

    def _date(self, millis: int) -> datetime:
        """A time of this machine as a time of Twilio."""
        return datetime.fromtimestamp(max(0, millis - self.ahead_ms) / SECOND, UTC)

    def _on_answer(self, answer: requests.Response, *arguments: object, **options: object) -> None:
        """Read what the SDK does not: Twilio's time, and how long it asks to wait."""
        _ = answer.content  # an error here would leave the connection open otherwise
        if date := answer.headers.get("Date"):
            there = parsedate_to_datetime(date).timestamp() * SECOND
            self.ahead_ms = self._context.clock.now() - int(there)
        wait = _SECONDS.fullmatch(answer.headers.get("Retry-After", ""))
        if answer.status_code == 429 and wait is not None:
            raise RateLimited(float(wait[0]))


def _pattern(url: str) -> str:
    """The API as one of `Download.hosts`."""
    parts = urlsplit(url)
    return f"http://{parts.netloc}" if parts.scheme == "http" else parts.netloc


def created_at(message: MessageInstance) -> int:
    """When a message was created, in milliseconds of Twilio's clock."""
    return int(message.date_created.timestamp() * SECOND)


def sent_at(message: MessageInstance) -> int:
    """When a message was sent, in milliseconds of Twilio's clock."""
    return int((message.date_sent or message.date_created).timestamp() * SECOND)
