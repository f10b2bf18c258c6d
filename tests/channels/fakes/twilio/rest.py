"""Twilio's REST API: messages are created, delivered and listed; accounts and numbers are read."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import formatdate
from typing import Unpack
from uuid import uuid4

import aiohttp
from aiohttp import web
from multidict import MultiDict

from tests.channels.fakes.base import Options
from tests.channels.fakes.twilio.messages import (
    ACCOUNT_SID,
    AUTH_TOKEN,
    NUMBER,
    OUTBOUND,
    Message,
    bare,
)
from tests.channels.fakes.twilio.webhooks import Webhooks

API_KEY = f"SK{'0' * 31}2"
API_SECRET = "fake-api-secret"  # gitleaks:allow
SERVICE_SID = f"MG{'0' * 31}3"
TEMPLATE = f"HX{'0' * 31}4"
TRIAL_PREFIX = "Sent from your Twilio trial account - "
MAX_BODY = 1600


class Rest(Webhooks):
    """The endpoints that the bot calls."""

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.trial = False
        self.listing = True
        """Whether the list of messages works."""
        self.hidden_until_sent = False
        """Whether messages of the bot stay queued, so that a filter by date does not find them."""
        self.revoked = False
        self.suspended = False
        self.typing: list[str] = []
        self.window_open = True
        self.refusals: dict[str, int] = {}
        """Error codes of the create, by number."""
        self.next_codes: list[int] = []
        """Error codes of the next creates."""
        self.undelivered: dict[str, int] = {}
        """Error codes of the status callback, by number."""
        self.sms_url = ""
        """The webhook of the number."""
        self.service_url = ""
        """The webhook of the messaging service."""

    def fail_number(self, number: str, create: int = 0, callback: int = 0) -> None:
        """Refuse messages to a number, or report them as undelivered."""
        if create:
            self.refusals[number] = create
        if callback:
            self.undelivered[number] = callback

    def limited(self, request: web.Request, seconds: float) -> web.Response:
        answer = _error(429, 20429, "Too Many Requests")
        answer.headers["Retry-After"] = f"{seconds:g}"
        return answer

    def failed(self, request: web.Request, status: int) -> web.Response:
        return _error(status, 20500, "Internal Server Error")

    def _denied(self, request: web.Request) -> web.Response | None:
        if self.suspended:
            return _error(403, 20403, "Account suspended")
        try:
            given = aiohttp.BasicAuth.decode(request.headers.get("Authorization", ""))
        except ValueError:
            given = None
        pairs = {(ACCOUNT_SID, AUTH_TOKEN), (API_KEY, API_SECRET)}
        if given is None or (given.login, given.password) not in pairs or self.revoked:
            return _error(401, 20003, "Authenticate")
        if given.login == API_KEY and request.path.endswith(f"{ACCOUNT_SID}.json"):
            return _error(401, 20003, "Authenticate")  # only main keys may
        return None

    async def _unknown(self, request: web.Request) -> web.Response:
        return _error(404, 20404, f"The requested resource {request.path} was not found")

    async def _create(self, request: web.Request) -> web.Response:
        if (denied := self._denied(request)) is not None:
            return denied
        form = MultiDict({str(k): str(v) for k, v in (await request.post()).items()})
        urls = [str(each) for each in (await request.post()).getall("MediaUrl", [])]
        if (code := self._refusal(form, urls)) is not None:
            return _error(400, code, f"The message to {form.get('To')} was refused")
        body = f"{TRIAL_PREFIX if self.trial else ''}{form.get('Body', '')}"
        now = time.time()
        message = Message(
            sid=f"{'MM' if urls else 'SM'}{uuid4().hex}",
            sender=form["From"],
            to=form["To"],
            body=body,
            direction=OUTBOUND,
            created=now,
            sent=None if self.hidden_until_sent else now,
            status="queued",
            callback=form.get("StatusCallback", ""),
            variables=form.get("ContentVariables", ""),
            validity=form.get("ValidityPeriod", ""),
            service=form.get("MessagingServiceSid", ""),
            urls=urls,
        )
        if message.variables:
            message.body = f"An answer: {json.loads(message.variables)['1']} Reply to go on."
        self._keep(message)
        self._spawn(self._deliver(message))
        return web.json_response(self._resource(message), status=201)

    def _refusal(self, form: MultiDict[str], urls: list[str]) -> int | None:
        """The error code of a create that Twilio refuses."""
        to = form.get("To", "")
        prefix = self.prefix
        if not to.startswith(f"{prefix}+") or not to.removeprefix(f"{prefix}+").isdecimal():
            return 21211
        if form.get("From") != f"{prefix}{NUMBER}":
            return 63007 if prefix else 21606
        if form.get("MessagingServiceSid", SERVICE_SID) != SERVICE_SID:
            return 21701
        if self.next_codes:
            return self.next_codes.pop(0)
        if bare(to) in self.opted_out:
            return 21610
        rules = {
            21617: len(form.get("Body", "").encode("utf-16-le")) > 2 * MAX_BODY,
            21602: not (form.get("Body") or urls or form.get("ContentSid")),
            21655: "ContentSid" in form and ("Body" in form or form["ContentSid"] != TEMPLATE),
            63013: any(each in form.get("ContentVariables", "") for each in ("\\n", "\\t", "    ")),
            21715: not 1 <= int(form.get("ValidityPeriod", "1")) <= 36_000,
            21609: not form.get("StatusCallback", "http").startswith("http"),
        }
        return self.refusals.get(bare(to)) or next(
            (c for c, broken in rules.items() if broken), None
        )

    async def _deliver(self, message: Message) -> None:
        """Fetch the media, deliver, and report each status."""
        try:
            for url in message.urls:
                name, kind, data = await self._fetch(url)
                sid = f"ME{uuid4().hex}"
                self._keep_media(sid, (name, kind, data))
                message.media.append(sid)
        except (aiohttp.ClientError, OSError, ValueError):
            await self._finish(message, "failed", 12300)
            return
        if (code := self.undelivered.get(bare(message.to))) is not None:
            await self._finish(message, "undelivered", code)
        elif self.channel == "whatsapp" and not (self.window_open or message.variables):
            await self._finish(message, "failed", 63016)
        else:
            self._keep(message)
            for status in self.callbacks:
                await self._finish(message, status, None)

    async def _finish(self, message: Message, status: str, code: int | None) -> None:
        message.status, message.error = status, code
        if message.sent is None and not self.hidden_until_sent:
            message.sent = time.time()
        self._keep(message)
        with suppress(aiohttp.ClientError, OSError, TimeoutError):
            await self._report(message, status, code)
        self.changed()

    async def _list(self, request: web.Request) -> web.Response:
        if (denied := self._denied(request)) is not None:
            return denied
        if not self.listing:
            return self.failed(request, 500)
        query = request.query
        found = [each for each in reversed(self.messages) if _matches(each, query)]
        found.sort(key=lambda each: each.sent or each.created, reverse=True)
        size, page = int(query.get("PageSize", "50")), int(query.get("Page", "0"))
        rest = found[size * (page + 1) :]
        following = request.rel_url.update_query({"Page": str(page + 1), "PageToken": "PA1"})
        return web.json_response(
            {
                "messages": [self._resource(each) for each in found[size * page :][:size]],
                "page": page,
                "page_size": size,
                "next_page_uri": str(following) if rest else None,
                "uri": str(request.rel_url),
            }
        )

    async def _list_media(self, request: web.Request) -> web.Response:
        if (denied := self._denied(request)) is not None:
            return denied
        message = self._find(request.match_info["sid"])
        uri = f"/2010-04-01/Accounts/{ACCOUNT_SID}/Messages/{message.sid}/Media"
        media = [
            {
                "sid": sid,
                "account_sid": ACCOUNT_SID,
                "parent_sid": message.sid,
                "content_type": self.media[sid][1],
                "uri": f"{uri}/{sid}.json",
            }
            for sid in message.media
        ]
        return web.json_response({"media_list": media, "next_page_uri": None, "page_size": 50})

    async def _redirect_media(self, request: web.Request) -> web.Response:
        if (denied := self._denied(request)) is not None:
            return denied
        raise web.HTTPTemporaryRedirect(f"{self.url}/cdn/{request.match_info['media']}")

    async def _send_media(self, request: web.Request) -> web.Response:
        _, kind, data = self.media[request.match_info["media"]]
        return web.Response(body=data, content_type=kind)

    async def _account(self, request: web.Request) -> web.Response:
        if (denied := self._denied(request)) is not None:
            return denied
        kind = "Trial" if self.trial else "Full"
        record = {"sid": ACCOUNT_SID, "friendly_name": "Fake", "status": "active", "type": kind}
        return web.json_response(record)

    async def _numbers(self, request: web.Request) -> web.Response:
        if (denied := self._denied(request)) is not None:
            return denied
        record = {
            "sid": f"PN{'0' * 32}",
            "phone_number": NUMBER,
            "capabilities": {"sms": True, "mms": True, "voice": True},
            "sms_url": self.sms_url,
            "sms_method": "POST",
            "sms_application_sid": "",
        }
        found = [record] if request.query.get("PhoneNumber", NUMBER) == NUMBER else []
        return web.json_response({"incoming_phone_numbers": found, "next_page_uri": None})

    async def _service(self, request: web.Request) -> web.Response:
        if (denied := self._denied(request)) is not None:
            return denied
        record = {
            "sid": SERVICE_SID,
            "inbound_request_url": self.service_url or None,
            "use_inbound_webhook_on_number": False,
        }
        return web.json_response(record)

    async def _senders(self, request: web.Request) -> web.Response:
        if (denied := self._denied(request)) is not None:
            return denied
        record = {
            "sid": f"XE{'0' * 32}",
            "sender_id": f"whatsapp:{NUMBER}",
            "status": "ONLINE",
            "webhook": {"callback_url": self.sms_url, "callback_method": "POST"},
        }
        meta = {"key": "senders", "page": 0, "page_size": 50, "next_page_url": None}
        return web.json_response({"senders": [record], "meta": meta})

    async def _type(self, request: web.Request) -> web.Response:
        if (denied := self._denied(request)) is not None:
            return denied
        form = await request.post()
        assert form["channel"] == "whatsapp"
        self._find(str(form["messageId"]))
        self.typing.append(str(form["messageId"]))
        return web.json_response({"success": True}, status=201)

    def _resource(self, message: Message) -> dict[str, object]:
        """A message as the API shows it."""
        return {
            "account_sid": ACCOUNT_SID,
            "api_version": "2010-04-01",
            "body": message.body,
            "date_created": formatdate(message.created, usegmt=False),
            "date_sent": None if message.sent is None else formatdate(message.sent),
            "direction": message.direction,
            "error_code": message.error,
            "from": message.sender,
            "num_media": str(len(message.media)),
            "num_segments": "1",
            "sid": message.sid,
            "status": message.status,
            "to": message.to,
            "uri": f"/2010-04-01/Accounts/{ACCOUNT_SID}/Messages/{message.sid}.json",
        }


def _matches(message: Message, query: Mapping[str, str]) -> bool:
    if query.get("To", message.to) != message.to or query.get("From", message.sender) != (
        message.sender
    ):
        return False
    after = query.get("DateSent>")
    if after is None:
        return True
    if message.sent is None:
        return False
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(message.sent)) >= after


def _error(status: int, code: int, text: str) -> web.Response:
    more = f"https://www.twilio.com/docs/errors/{code}"
    record = {"code": code, "message": text, "more_info": more, "status": status}
    return web.json_response(record, status=status)
