"""Twilio: SMS, MMS and WhatsApp.

Messages arrive as signed webhooks, and the list of messages has those whose webhook was missed.
Each part has a status callback of its own, which proves that Twilio took it.
"""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import parse_qs, quote, unquote

from multidict import MultiDict
from twilio.request_validator import RequestValidator

from bullpen.channels.failures import ChannelDown, NotSent, RateLimited, Refused, WindowClosed
from bullpen.channels.inbound import Attachment, Inbound, Payload
from bullpen.channels.listener import (
    FORM,
    Hook,
    Listener,
    WebhookAnswer,
    WebhookRequest,
    check_public_url,
    check_secret,
)
from bullpen.channels.platform import (
    CatchUp,
    ChannelContext,
    Download,
    Finding,
    Identity,
    Intake,
    Note,
    Place,
    Platform,
    Progress,
    Recovered,
    Sending,
    Stage,
    Verdict,
)
from bullpen.channels.text.plain import (
    fits_sms,
    fits_whatsapp,
    render_sms,
    render_whatsapp,
    segments,
)
from bullpen.channels.text.tree import Document
from bullpen.channels.twilio.api import TwilioApi, sent_at
from bullpen.channels.twilio.inbound import (
    CONFLICT,
    CURSOR,
    PART_KEY,
    PHONE_NUMBER,
    WRITTEN_AT,
    Reports,
    parse_message,
    parse_report,
)
from bullpen.channels.twilio.setup import Setup, check_setup, probe_account
from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.errors import BullpenError

POLL_SECONDS = 60.0
"""How often the list of messages is read if there is no public URL for webhooks."""
SETTLED_MS = 2 * MINUTE
"""The time after which a part that has no callback and is not in the list was not sent."""
CREATED_MS = 2 * SECOND
"""By how much a message may seem to be older than its attempt: Twilio's times are in seconds."""
MAX_FIELDS = 200
MAX_VALIDITY_SECONDS = 36_000
MAX_SEGMENTS = 10
"""Carriers cut or drop longer SMS."""
MMS_BYTES = 5_000_000
WHATSAPP_BYTES = 16_000_000
DAY_SECONDS = 24 * 3600.0
TYPING_SECONDS = 20.0
TEMPLATE_CHARACTERS = 900
"""WhatsApp allows 1024 together with the template's own words."""
TRIAL_PREFIX = "Sent from your Twilio trial account - "
EMPTY_TWIML = b'<?xml version="1.0" encoding="UTF-8"?><Response/>'

MESSAGE, FALLBACK, STATUS = "/message", "/fallback", "/status/"
SIGNATURE = "X-Twilio-Signature"


class _Twilio(Platform):
    """What SMS and WhatsApp have in common: one number, served by one process."""

    catch_up = CatchUp.ACCOUNT
    prefix: ClassVar[str] = ""
    """What Twilio's addresses have before the number."""
    max_file_bytes: ClassVar[int]

    def __init__(self, context: ChannelContext) -> None:
        super().__init__(context)
        self._token = context.setting("auth_token").strip()
        self._public_url = context.setting("public_url").strip().rstrip("/")
        number = context.setting("number").strip().removeprefix(self.prefix)
        self._own = f"{self.prefix}{number}"
        self._service = context.setting("messaging_service").strip()
        self._api = TwilioApi(context)
        self._reports = Reports()
        self._listener: Listener | None = None

    @abstractmethod
    def render(self, text: Document) -> str:
        """A text as the body of a message."""

    def is_body(self, found: str, body: str) -> bool:
        """Whether a message of the list has this body."""
        return found == body.strip()

    async def start(self) -> Identity:
        account = self.context.account
        number = self._own.removeprefix(self.prefix)
        try:
            check_secret(account, "auth_token", self._token)
            if self._public_url:  # as the listener writes it, for signatures
                self._public_url = str(check_public_url(account, self._public_url)).rstrip("/")
        except BullpenError as error:
            raise ChannelDown("invalid_setting", str(error), error.hint) from None
        if not PHONE_NUMBER.fullmatch(number):
            raise ChannelDown(
                "invalid_number",
                "the number is not in the international form",
                f"Set it with + and country code: "
                f"`bullpen config set {account}.number +15551234567`.",
            )
        try:
            await self._api.probe(self._own)
        except RateLimited as error:
            raise ConnectionError(str(error)) from None
        return Identity(id=number, details=self._api.account_sid)

    async def receive(self, intake: Intake) -> None:
        if not self._public_url:
            while True:
                intake.connected()
                await asyncio.sleep(POLL_SECONDS)

        async def take(request: WebhookRequest) -> WebhookAnswer:
            return await self._take(intake, request)

        hooks = [
            Hook(
                path=path,
                signature=SIGNATURE,
                setting="auth_token",
                secret=self._token,
                verify=self._is_signed,
                handle=take,
                types=(FORM,),
            )
            for path in (MESSAGE, FALLBACK, STATUS)
        ]
        context = self.context
        port = int(context.setting("port"))
        try:
            async with Listener(
                context.account, port, self._public_url, hooks, clock=context.clock, log=context.log
            ) as self._listener:
                intake.connected()
                await asyncio.Event().wait()
        except BullpenError as error:
            raise ChannelDown("listener", str(error), error.hint) from None
        finally:
            self._listener = None

    def _is_signed(self, request: WebhookRequest) -> bool:
        """Whether the auth token signed the request for the public URL."""
        form = MultiDict(
            [(name, each) for name, values in _parse_form(request).items() for each in values]
        )
        signature = request.headers[SIGNATURE]
        valid: object = RequestValidator(self._token).validate(request.url, form, signature)
        return valid is True

    async def _take(self, intake: Intake, request: WebhookRequest) -> WebhookAnswer:
        """Take a signed webhook in; it is answered when it is stored."""
        form = {name: values[0] for name, values in _parse_form(request).items()}
        is_report = request.path.startswith(STATUS)
        own = form.get("From" if is_report else "To")
        if form.get("AccountSid") != self._api.account_sid or own != self._own:
            self.context.log.warning("a webhook for another account or number was refused")
            return WebhookAnswer(status=403)
        if is_report:
            await self._take_report(intake, unquote(request.path.removeprefix(STATUS)), form)
            return WebhookAnswer()
        await intake.add({**form, WRITTEN_AT: self.context.clock.now()})
        return WebhookAnswer(EMPTY_TWIML, "text/xml")

    async def _take_report(self, intake: Intake, key: str, form: Mapping[str, str]) -> None:
        """Take a status in, unless a later one is known."""
        sid, status = form.get("MessageSid", ""), form.get("MessageStatus", "")
        if not self._reports.is_news(sid, status):
            intake.heard()
            return
        conflict = self._reports.conflict(sid, status)
        await intake.add({**form, PART_KEY: key, CONFLICT: conflict})
        self._reports.add(key, sid, status, self.context.clock.now())

    def parse(self, payload: Payload) -> Inbound | None:
        if PART_KEY in payload:
            return parse_report(payload)
        return parse_message(payload, self.prefix, self._own, self.context.clock.now())

    async def send(self, sending: Sending, note: Note) -> str:
        sid = await self._create(sending, self._envelope(sending))
        self._reports.sent(sending.key, sid, self.context.clock.now())
        return sid

    async def _create(self, sending: Sending, envelope: Mapping[str, object]) -> str:
        return await self._api.create(**envelope, **self._content(sending))

    def _envelope(self, sending: Sending) -> dict[str, object]:
        """Everything of a message but its content."""
        # The queue at Twilio must not outlive the response.
        left = (sending.expires_at - self.context.clock.now()) // SECOND
        envelope: dict[str, object] = {
            "to": self._address(sending),
            "from_": self._own,
            "validity_period": max(1, min(left, MAX_VALIDITY_SECONDS)),
        }
        if self._service:
            envelope["messaging_service_sid"] = self._service
        if self._public_url:
            key = quote(sending.key, safe="")
            envelope["status_callback"] = f"{self._public_url}{STATUS}{key}"
        return envelope

    def _content(self, sending: Sending) -> dict[str, object]:
        """The text of a part, or the URL of its file."""
        if sending.text is not None:
            if not (body := self.render(sending.text)):
                raise Refused("the text has no visible character")
            return {"body": body}
        file = sending.file
        assert file is not None
        if not self._public_url:
            raise Refused("Twilio fetches files from the public URL, which is not set")
        if file.size > self.max_file_bytes:
            raise Refused(f"the file has more than {self.max_file_bytes // 1_000_000} MB")
        if self._listener is None:
            raise NotSent("the listener has not been started yet")
        return {"media_url": [self._listener.capabilities.offer(file)]}

    async def recover(self, sending: Sending) -> Recovered:
        if sid := self._reports.sid_of(sending.key, sending.began_at):
            return Recovered(Verdict.FOUND, sid)
        body = "" if sending.text is None else self.render(sending.text)
        sent = await self._api.sent(
            self._address(sending), self._own, sending.began_at - CREATED_MS
        )
        for each in sent:
            text = str(each.body or "").removeprefix(TRIAL_PREFIX).strip()
            if not self.is_body(text, body) or self._is_other(str(each.sid), sending):
                continue
            if str(each.direction).startswith("outbound") and (body or str(each.num_media) != "0"):
                return Recovered(Verdict.FOUND, str(each.sid))
        # The list may be late, and the request may still be on its way.
        age = self.context.clock.now() - sending.began_at
        return Recovered(Verdict.LATER if age < SETTLED_MS else Verdict.NOT_SENT)

    def _is_other(self, sid: str, sending: Sending) -> bool:
        """Whether a message is known to be another part."""
        return sid in sending.others or self._reports.is_other(sid, sending.key)

    async def missed(self, place: Place, limit: int) -> list[Payload]:
        since, _, last = place.cursor.partition("/")
        found = await self._api.received(self._own, int(since) if since else place.since)
        sids = [str(each.sid) for each in found]
        start = sids.index(last) + 1 if last in sids else 0
        page = found[start : start + limit]
        forms = await asyncio.gather(*(self._api.form_of(each) for each in page))
        payloads: list[Payload] = []
        for each, form in zip(page, forms, strict=True):
            at = sent_at(each) + self._api.ahead_ms
            payloads.append({**form, WRITTEN_AT: at, CURSOR: f"{at}/{each.sid}"})
        return payloads

    async def newest(self, place: Place) -> bool:
        return bool(await self.missed(place, 1))

    async def locate(self, attachment: Attachment) -> Download:
        message, _, media = attachment.source.partition("/")
        return self._api.download(message, media)

    async def check(self) -> list[Finding]:
        return await self._api.read(lambda: check_setup(self._setup()))

    async def probe(self, chat: str) -> list[Finding]:
        to = f"{self.prefix}{chat}"
        return await self._api.read(lambda: probe_account(self._setup(), to))

    async def close(self) -> None:
        self._api.close()

    def _setup(self) -> Setup:
        return Setup(
            account=self.context.account,
            own=self._own,
            webhook=f"{self._public_url}{MESSAGE}" if self._public_url else "",
            service=self._service,
            api_key=self.context.setting("api_key").strip(),
            client=self._api.client,
            token_client=self._api.token_client,
        )

    def _address(self, sending: Sending) -> str:
        return f"{self.prefix}{sending.to.chat or sending.to.person}"


class Sms(_Twilio):
    """SMS and MMS of one number."""

    max_file_bytes = MMS_BYTES

    def render(self, text: Document) -> str:
        return render_sms(text)

    def fits(self, text: Document) -> bool:
        return fits_sms(text) and segments(render_sms(text)) <= MAX_SEGMENTS


class WhatsApp(_Twilio):
    """WhatsApp messages of one number."""

    prefix = "whatsapp:"
    max_file_bytes = WHATSAPP_BYTES
    progress_seconds = TYPING_SECONDS
    window_seconds = DAY_SECONDS

    def render(self, text: Document) -> str:
        return render_whatsapp(text)

    def fits(self, text: Document) -> bool:
        return fits_whatsapp(text)

    def is_body(self, found: str, body: str) -> bool:
        # The list has the template's own words as well.
        is_template = bool(body and self.context.setting("template"))
        return super().is_body(found, body) or (is_template and _variable(body) in found)

    async def _create(self, sending: Sending, envelope: Mapping[str, object]) -> str:
        if not 0 < sending.window_until <= self.context.clock.now():
            try:
                return await super()._create(sending, envelope)
            except WindowClosed:
                pass
        return await self._create_by_template(sending, envelope)

    async def _create_by_template(self, sending: Sending, envelope: Mapping[str, object]) -> str:
        """After the window, WhatsApp accepts only templates that it has approved."""
        template = self.context.setting("template").strip()
        if not template or sending.text is None:
            raise WindowClosed("the person's last WhatsApp message is more than 24 hours old")
        variables = json.dumps({"1": _variable(self.render(sending.text))})
        return await self._api.create(**envelope, content_sid=template, content_variables=variables)

    async def show(self, progress: Progress) -> None:
        if progress.to.message and progress.stage in (Stage.QUEUED, Stage.WORKING):
            await self._api.show_typing(progress.to.message)


def _variable(body: str) -> str:
    """A body as the variable of a template: without line breaks and runs of spaces."""
    text = " ".join(body.split())
    if len(text) > TEMPLATE_CHARACTERS:
        text = f"{text[: TEMPLATE_CHARACTERS - 2].rpartition(' ')[0]} …"
    return text


def _parse_form(request: WebhookRequest) -> dict[str, list[str]]:
    """The fields of a form; raises ValueError."""
    text = request.body.decode()
    return parse_qs(text, keep_blank_values=True, strict_parsing=True, max_num_fields=MAX_FIELDS)
