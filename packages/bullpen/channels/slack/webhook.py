"""Slack's HTTP events: signed requests at the listener of the account."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qsl

from slack_sdk.signature import SignatureVerifier

from bullpen.channels.failures import ChannelDown
from bullpen.channels.listener import (
    FORM,
    LONG_BODY_BYTES,
    Hook,
    Listener,
    WebhookAnswer,
    WebhookRequest,
)
from bullpen.channels.platform import ChannelContext, Intake
from bullpen.channels.slack.api import Object, as_object, as_text
from bullpen.channels.slack.events import down_event, event_payload
from bullpen.core.errors import BullpenError
from bullpen.core.strict_json import read_json

EVENTS_PATH = "/events"
SIGNATURE = "X-Slack-Signature"
TIMESTAMP = "X-Slack-Request-Timestamp"
SWEEP_SECONDS = 300.0
"""How often the history is read: nobody says when Slack cannot reach the proxy."""
ANSWER_SECONDS = 10.0
"""Slack waits 3 s; what is stored later is recognized when Slack sends it again."""


class SlackWebhook:
    """Receives events, slash commands and buttons at one URL."""

    def __init__(self, context: ChannelContext) -> None:
        self._context = context
        self._down: asyncio.Future[None] | None = None

    async def receive(self, intake: Intake) -> None:
        """Receive until cancelled; raises `ChannelDown`."""
        self._down = asyncio.get_running_loop().create_future()
        try:
            async with self._listener(intake):
                while not self._down.done():
                    intake.connected()
                    await asyncio.wait({self._down}, timeout=SWEEP_SECONDS)
                self._down.result()
        except BullpenError as error:
            raise ChannelDown(error.code, str(error), error.hint or "") from None

    def _listener(self, intake: Intake) -> Listener:
        context = self._context
        secret = context.setting("signing_secret")

        def verify(request: WebhookRequest) -> bool:
            return SignatureVerifier(secret).is_valid(
                request.body, request.headers.get(TIMESTAMP), request.headers.get(SIGNATURE)
            )

        async def handle(request: WebhookRequest) -> WebhookAnswer:
            return await self._handle(intake, request)

        hook = Hook(
            path=EVENTS_PATH,
            signature=SIGNATURE,
            setting="signing_secret",
            secret=secret,
            verify=verify,
            handle=handle,
            body_bytes=LONG_BODY_BYTES,
        )
        return Listener(
            context.account,
            int(context.setting("port")),
            context.setting("public_url"),
            [hook],
            clock=context.clock,
            log=context.log,
            answer_seconds=ANSWER_SECONDS,
        )

    async def _handle(self, intake: Intake, request: WebhookRequest) -> WebhookAnswer:
        """Answer when the content is stored."""
        kind, body = read_request(request)
        if kind == "url_verification":
            return WebhookAnswer(as_text(body.get("challenge")).encode())
        await intake.add(event_payload(kind, body, self._context.clock.now()))
        down = down_event(body)
        if down is not None and self._down is not None and not self._down.done():
            self._down.set_exception(down)
        return WebhookAnswer()


def read_request(request: WebhookRequest) -> tuple[str, Object]:
    """The kind and the content of a verified request."""
    if FORM not in request.headers.get("Content-Type", ""):
        body = as_object(read_json(request.body.decode()))
        kind = as_text(body.get("type"))
        return ("events_api" if kind == "event_callback" else kind), body
    form = dict(parse_qsl(request.body.decode(), keep_blank_values=True))
    if "payload" in form:
        return "interactive", as_object(read_json(form["payload"]))
    return "slash_commands", form
