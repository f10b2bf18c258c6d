"""A fake of Twilio: the REST API for messages, signed webhooks, status callbacks and media.

What it pushes is signed for the public URL and goes to `listener`, as through a proxy.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field
from email.utils import formatdate
from hashlib import sha1
from hmac import digest
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import aiohttp
import pytest
from aiohttp import web
from multidict import MultiDict

from bullpen.channels.files.file_types import type_by_name
from tests.channels.fakes.base import FakePlatform
from tests.channels.fakes.process import serve
from tests.ports import free_port

ACCOUNT_SID = f"AC{'0' * 31}1"
AUTH_TOKEN = "fake-auth-token"  # gitleaks:allow
API_KEY = f"SK{'0' * 31}2"
API_SECRET = "fake-api-secret"  # gitleaks:allow
SERVICE_SID = f"MG{'0' * 31}3"
NUMBER = "+15550000001"
TEMPLATE = f"HX{'0' * 31}4"
TRIAL_PREFIX = "Sent from your Twilio trial account - "
MAX_BODY = 1600
PUSH_SECONDS = 15.0
STOP_WORDS = {"STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"}
START_WORDS = {"START", "YES", "UNSTOP"}
OUTBOUND, INBOUND = "outbound-api", "inbound"

File = tuple[str, str, bytes]
"""Name, type and content."""


@dataclass(slots=True)
class Message:
    """A message as Twilio keeps it."""

    sid: str
    sender: str
    to: str
    body: str
    direction: str
    created: float
    sent: float | None
    status: str
    error: int | None = None
    media: list[str] = field(default_factory=list)
    """The SIDs of its media."""
    urls: list[str] = field(default_factory=list)
    """What the bot sends, before it is fetched."""
    callback: str = ""
    variables: str = ""
    validity: str = ""
    service: str = ""


@dataclass(frozen=True, slots=True)
class Post:
    """A message of the bot as a person sees it."""

    id: str
    text: str
    file: str = ""
    thread: str = ""


class FakeTwilio(FakePlatform):
    """Twilio on loopback, with one account and one number for SMS and WhatsApp."""

    controls = FakePlatform.controls | {
        *("say", "posts", "redeliver", "fail_number", "unacked", "set", "texts_in"),
    }

    def __init__(self, port: int = 0, *, state: Path | None = None, channel: str = "sms") -> None:
        super().__init__(port, state=state)
        self.channel = channel
        self.public_url = ""
        self.listener = ""
        """The listener on loopback that the public URL leads to."""
        self.trial = False
        self.webhooks = True
        """Whether messages of people are pushed; otherwise only the list has them."""
        self.callbacks: tuple[str, ...] = ("sent", "delivered")
        """The statuses that are reported for each message of the bot, in this order."""
        self.listing = True
        """Whether the list of messages works."""
        self.hidden_until_sent = False
        """Whether messages of the bot stay queued, so that a filter by date does not find them."""
        self.revoked = False
        self.suspended = False
        self.messages: list[Message] = []
        self.media: dict[str, File] = {}
        self.typing: list[str] = []
        self.opted_out: set[str] = set()
        self.window_open = True
        self.refusals: dict[str, int] = {}
        """Error codes of the create, by number."""
        self.next_codes: list[int] = []
        """Error codes of the next creates."""
        self.undelivered: dict[str, int] = {}
        """Error codes of the status callback, by number."""
        self.acked: set[str] = set()
        self._turns: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.answers: list[tuple[str, int, str]] = []
        """What the listener answered: path, status, body."""
        self.sms_url = ""
        """The webhook of the number."""
        self.service_url = ""
        """The webhook of the messaging service."""

    def add_routes(self, router: web.UrlDispatcher) -> None:
        account = f"/2010-04-01/Accounts/{ACCOUNT_SID}"
        router.add_post(f"{account}/Messages.json", self._create)
        router.add_get(f"{account}/Messages.json", self._list)
        router.add_get(f"{account}/Messages/{{sid}}/Media.json", self._list_media)
        router.add_get(f"{account}/Messages/{{sid}}/Media/{{media}}", self._redirect_media)
        router.add_get(f"{account}/IncomingPhoneNumbers.json", self._numbers)
        router.add_get(f"{account}.json", self._account)
        router.add_post("/v2/Indicators/Typing.json", self._type)
        router.add_get("/v2/Channels/Senders", self._senders)
        router.add_get("/cdn/{media}", self._send_media)
        router.add_get(f"/v1/Services/{SERVICE_SID}", self._service)
        router.add_route("*", "/{rest:.*}", self._unknown)

    def recall(self, record: dict[str, object]) -> None:
        match record:
            case {"acked": str(sid)}:
                self.acked.add(sid)
            case {"message": dict(fields)}:
                found = Message(**fields)
                sids = [each.sid for each in self.messages]
                if found.sid in sids:  # its status has changed, not its place
                    self.messages[sids.index(found.sid)] = found
                else:
                    self.messages.append(found)
            case {"media": str(sid), "name": str(name), "type": str(kind), "data": str(data)}:
                self.media[sid] = (name, kind, base64.b64decode(data))

    def limited(self, request: web.Request, seconds: float) -> web.Response:
        answer = _error(429, 20429, "Too Many Requests")
        answer.headers["Retry-After"] = f"{seconds:g}"
        return answer

    def failed(self, request: web.Request, status: int) -> web.Response:
        return _error(status, 20500, "Internal Server Error")

    # What tests do.

    def set(self, **values: object) -> None:
        """Set attributes, such as `trial=True`."""
        for name, value in values.items():
            assert hasattr(self, name), name
            setattr(self, name, value)

    def say(
        self,
        person: str,
        text: str,
        files: Iterable[File] = (),
        *,
        push: bool | None = None,
        created: float | None = None,
        **fields: str,
    ) -> str:
        """A person writes; returns the SID. `fields` are further fields of the webhook."""
        return self.run(self._say(person, text, list(files), push, created, fields))

    def redeliver(self, sid: str, fallback: bool = False) -> int:
        """Push a message of a person once more; returns the status of the answer."""
        return self.run(
            self._push_message(self._find(sid), {}, "/fallback" if fallback else "/message")
        )

    def report(self, sid: str, status: str, error: int | None = None) -> int:
        """Report a status of a message of the bot; returns the status of the answer."""
        return self.run(self._report(self._find(sid), status, error))

    def push(
        self,
        path: str,
        form: Mapping[str, str],
        *,
        signature: str | None = None,
        headers: Mapping[str, str] | None = None,
        token: str = AUTH_TOKEN,
    ) -> tuple[int, str]:
        """Push any form, signed unless a signature is given; returns the status and the body."""
        url = f"{self.public_url}{path}"
        sign = signature if signature is not None else sign_form(url, form, token)
        return self.run(self._post(url, form, {"X-Twilio-Signature": sign, **(headers or {})}))

    def fail_number(self, number: str, create: int = 0, callback: int = 0) -> None:
        """Refuse messages to a number, or report them as undelivered."""
        if create:
            self.refusals[number] = create
        if callback:
            self.undelivered[number] = callback

    def sent(self, person: str = "") -> list[Message]:
        """The messages of the bot, to one person or all."""
        return [
            each
            for each in self.messages
            if each.direction == OUTBOUND and person in ("", bare(each.to))
        ]

    def parts(self, person: str) -> list[Post]:
        """What a person sees of the bot."""
        return [
            Post(each.sid, each.body, ", ".join(url.rsplit("/", 1)[-1] for url in each.urls))
            for each in self.sent(person)
            if each.status not in ("failed", "undelivered")
        ]

    def posts(self, person: str) -> list[str]:
        """The texts that a person sees of the bot."""
        return [each.text for each in self.parts(person)]

    def texts_in(self) -> list[str]:
        """The SIDs of the messages of people."""
        return [each.sid for each in self.messages if each.direction == INBOUND]

    def unacked(self) -> list[str]:
        """The SIDs of messages of people whose webhook was not answered with success."""
        return [sid for sid in self.texts_in() if sid not in self.acked]

    def settled(self) -> bool:
        """Whether nothing is being delivered or pushed."""
        return not self._tasks

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # The API.

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
        prefix = "whatsapp:" if self.channel == "whatsapp" else ""
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

    async def _report(self, message: Message, status: str, code: int | None) -> int:
        if not message.callback:
            return 0
        form = {
            "AccountSid": ACCOUNT_SID,
            "From": message.sender,
            "MessageSid": message.sid,
            "MessageStatus": status,
            "SmsSid": message.sid,
            "SmsStatus": status,
            "To": message.to,
            **({"ErrorCode": str(code)} if code else {}),
        }
        signed = {"X-Twilio-Signature": sign_form(message.callback, form)}
        return (await self._post(message.callback, form, signed))[0]

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

    # What it pushes.

    async def _say(
        self,
        person: str,
        text: str,
        files: list[File],
        push: bool | None,
        created: float | None,
        fields: dict[str, str],
    ) -> str:
        prefix = "whatsapp:" if self.channel == "whatsapp" else ""
        now = time.time() if created is None else created
        media = [f"ME{uuid4().hex}" for _ in files]
        for sid, file in zip(media, files, strict=True):
            self._keep_media(sid, file)
        message = Message(
            sid=f"{'MM' if files else 'SM'}{uuid4().hex}",
            sender=f"{prefix}{person}",
            to=f"{prefix}{NUMBER}",
            body=text,
            direction=INBOUND,
            created=now,
            sent=now,
            status="received",
            media=media,
        )
        self._keep(message)
        word = text.strip().upper()
        if word in STOP_WORDS:
            self.opted_out.add(person)
        elif word in START_WORDS:
            self.opted_out.discard(person)
        if self.webhooks if push is None else push:
            for _ in range(self.copies("message")):
                self._spawn(self._try_webhook(message, fields))
        self.changed()
        return message.sid

    async def _try_webhook(self, message: Message, fields: Mapping[str, str]) -> None:
        """Push a message: once more if the connection is refused, then to the fallback URL."""
        paths = ["/message", "/message", "/fallback"]
        # In order, which Twilio does not promise, but mostly keeps.
        async with self._turns.setdefault(message.sender, asyncio.Lock()):
            while paths:
                with suppress(aiohttp.ClientError, OSError, TimeoutError):
                    if await self._push_message(message, fields, paths[0]) < 300:
                        return
                    paths = ["", *paths[-1:]] if paths[0] == "/message" else [""]
                del paths[0]
                await asyncio.sleep(0.05)

    async def _push_message(self, message: Message, fields: Mapping[str, str], path: str) -> int:
        form = self.form(message) | dict(fields)
        if path == "/fallback":
            form |= {"ErrorCode": "11200", "ErrorUrl": f"{self.public_url}/message"}
        url = f"{self.public_url}{path}"
        status, _ = await self._post(url, form, {"X-Twilio-Signature": sign_form(url, form)})
        if status < 300:
            self.acked.add(message.sid)
            self.remember({"acked": message.sid})
        self.changed()
        return status

    def form(self, message: Message) -> dict[str, str]:
        """The webhook's form for a message of a person."""
        base = f"{self.url}/2010-04-01/Accounts/{ACCOUNT_SID}/Messages/{message.sid}/Media"
        form = {
            "AccountSid": ACCOUNT_SID,
            "ApiVersion": "2010-04-01",
            "Body": message.body,
            "From": message.sender,
            "MessageSid": message.sid,
            "NumMedia": str(len(message.media)),
            "NumSegments": "1",
            "SmsMessageSid": message.sid,
            "SmsSid": message.sid,
            "SmsStatus": "received",
            "To": message.to,
        }
        if self.channel == "whatsapp":
            number = bare(message.sender)
            form |= {"ProfileName": f"Person {number[-2:]}", "WaId": number.lstrip("+")}
        for index, sid in enumerate(message.media):
            form[f"MediaUrl{index}"] = f"{base}/{sid}"
            form[f"MediaContentType{index}"] = self.media[sid][1]
        return form

    async def _post(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[int, str]:
        timeout = aiohttp.ClientTimeout(PUSH_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(self._local(url), data=dict(form), headers=headers) as answer,
        ):
            body = await answer.text()
            self.answers.append((url.removeprefix(self.public_url), answer.status, body))
            return answer.status, body

    async def _fetch(self, url: str) -> File:
        """Fetch a file that the bot sends, as anybody could."""
        async with aiohttp.ClientSession() as session, session.get(self._local(url)) as answer:
            answer.raise_for_status()
            return url.rsplit("/", 1)[-1], answer.content_type, await answer.read()

    def _local(self, url: str) -> str:
        """Where the proxy of the public URL leads."""
        assert url.startswith(f"{self.public_url}/"), url
        host = "/".join(self.public_url.split("/", 3)[:3])
        return f"{self.listener}{url.removeprefix(host)}"

    def _find(self, sid: str) -> Message:
        return next(each for each in self.messages if each.sid == sid)

    def _keep(self, message: Message) -> None:
        if all(each is not message for each in self.messages):
            self.messages.append(message)
        self.remember({"message": asdict(message)})

    def _keep_media(self, sid: str, file: File) -> None:
        self.media[sid] = file
        name, kind, data = file
        encoded = base64.b64encode(data).decode()
        self.remember({"media": sid, "name": name, "type": kind, "data": encoded})

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


def bare(address: str) -> str:
    """A number without `whatsapp:`."""
    return address.removeprefix("whatsapp:")


def sign_form(url: str, form: Mapping[str, str], token: str = AUTH_TOKEN) -> str:
    """The signature of a form, computed here and not by the SDK under test."""
    text = url + "".join(f"{name}{form[name]}" for name in sorted(form))
    return base64.b64encode(digest(token.encode(), text.encode(), sha1)).decode()


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


class TwilioHarness:
    """What the conformance suite of channels does to the fake, in the words of all platforms."""

    has_groups: ClassVar[bool] = False
    has_edits: ClassVar[bool] = False

    def __init__(self, fake: FakeTwilio, *, port: int = 0) -> None:
        """`port` is that of the client's listener."""
        self.fake = fake
        self.channel = fake.channel
        self.port = port or free_port()
        fake.public_url = f"https://bots.example.org/{fake.channel}"
        fake.listener = f"http://127.0.0.1:{self.port}"
        self._offline: AbstractContextManager[None] | None = None

    def settings(self) -> dict[str, str]:
        """The settings of the account that lead to the fake."""
        return {
            "account_sid": ACCOUNT_SID,
            "auth_token": AUTH_TOKEN,
            "number": NUMBER,
            "public_url": self.fake.public_url,
            "port": str(self.port),
            "api_url": self.fake.url,
            **({"template": TEMPLATE} if self.channel == "whatsapp" else {}),
        }

    def person(self, number: int) -> str:
        """The id of a person, which is their number."""
        return f"+1555100{number:04}"

    def chat(self, direct: bool = True) -> str:
        """The chat of the first person; there are no groups."""
        assert direct, "Twilio has no groups"
        return self.person(1)

    def direct(self, number: int) -> str:
        """The chat of a person."""
        return self.person(number)

    def hasten(self, patch: pytest.MonkeyPatch) -> None:
        """Shorten the times for which no test wants to wait."""
        patch.setattr("bullpen.channels.twilio.platform.SETTLED_MS", 1_000)
        patch.setattr("bullpen.channels.catch_up.SWEEP_SECONDS", 1.0)

    def say(
        self,
        chat: str,
        person: str,
        text: str,
        *,
        mention: bool = True,
        files: Iterable[tuple[str, bytes]] = (),
        thread: str = "",
    ) -> str:
        """A person writes to the bot."""
        assert chat == person, "a chat is the number of its person"
        typed = [(name, type_by_name(name), data) for name, data in files]
        return self.fake.say(person, text, typed)

    def redeliver(self, message_id: str) -> None:
        """Push a message again by both webhooks."""
        self.fake.redeliver(message_id)
        self.fake.redeliver(message_id, fallback=True)

    def posts(self, chat: str) -> list[str]:
        """The texts that a person sees."""
        return [each.text for each in self.parts(chat) if each.text]

    def parts(self, chat: str) -> list[Post]:
        """What a person sees."""
        return self.fake.parts(chat)

    def fail_next(self, fault: str, n: int = 1, *, seconds: float = 1.0) -> None:
        """Misbehave on the next sends."""
        create = "POST */Messages.json"
        match fault:
            case "refuse":
                self.fake.vanish(seconds)
            case "error500":
                self.fake.fail("error", create, times=n)
            case "taken_then_500":
                self.fake.fail("error", create, times=n, taken=True)
            case "rate_limit":
                self.fake.fail("limit", create, times=n, seconds=seconds)
            case "refused":
                self.fake.next_codes += [30007] * n
            case "revoked":
                self.fake.revoked = True
            case _:
                self.fake.fail(fault, create, times=n)

    def heal(self) -> None:
        """Stop all faults."""
        self.fake.heal()
        self.fake.revoked = False

    def offline(self) -> None:
        """Twilio and the listener cannot reach each other; people may write meanwhile."""
        self.fake.webhooks = False
        self._offline = self.fake.gone()
        self._offline.__enter__()

    def online(self) -> None:
        """They can reach each other again; only the list has what was written."""
        assert self._offline is not None
        self._offline.__exit__(None, None, None)
        self._offline = None
        self.fake.webhooks = True

    def is_acked(self, message_id: str) -> bool:
        """Whether the webhook of a message was answered with success."""
        return message_id in self.fake.acked

    def lookup_off(self) -> None:
        """Neither status callbacks nor the list tell what became of a part."""
        self.fake.listing, self._callbacks = False, self.fake.callbacks
        self.fake.callbacks = ()

    def lookup_on(self) -> None:
        """The list works again."""
        self.fake.listing, self.fake.callbacks = True, self._callbacks

    def progress(self, chat: str) -> list[str]:
        """The SIDs of the messages below which the bot was seen typing."""
        own = {each.sid for each in self.fake.messages if bare(each.sender) == chat}
        return [each for each in self.fake.typing if each in own]


if __name__ == "__main__":
    serve(FakeTwilio)
