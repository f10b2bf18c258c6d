"""Telegram's webhook: updates are posted to the listener, with a secret in a header."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from bullpen.channels.failures import ChannelDown
from bullpen.channels.listener import (
    JSON,
    LONG_BODY_BYTES,
    Hook,
    Listener,
    WebhookAnswer,
    WebhookRequest,
)
from bullpen.channels.platform import ChannelContext, Intake
from bullpen.channels.telegram.api import BotApi
from bullpen.channels.telegram.updates import UPDATE_TYPES
from bullpen.core.errors import BullpenError

PATH = "/updates"
REPLACED = "webhook_replaced"
HEADER = "X-Telegram-Bot-Api-Secret-Token"

_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")


class Webhook:
    """The webhook of one account."""

    def __init__(
        self, context: ChannelContext, api: BotApi, stored: Callable[[Mapping[str, object]], None]
    ) -> None:
        """`stored` is called with each update after its commit."""
        self._context, self._api, self._stored = context, api, stored
        self._secret = check_secret(context)
        self.url = own_url(context)

    @asynccontextmanager
    async def open(self, intake: Intake) -> AsyncIterator[None]:
        """Listen until the block ends; each update is answered after its commit."""
        setting = self._context.setting

        async def handle(request: WebhookRequest) -> WebhookAnswer:
            update = json.loads(request.body)
            if not isinstance(update, dict):
                raise ValueError("the update is not an object")
            await intake.add(update)
            self._stored(update)
            return WebhookAnswer()

        hook = Hook(
            path=PATH,
            signature=HEADER,
            setting="webhook_secret",
            secret=self._secret,
            verify=self._verify,
            handle=handle,
            types=(JSON,),
            body_bytes=LONG_BODY_BYTES,
            signs_body=False,
        )
        try:
            async with Listener(
                self._context.account,
                int(setting("port")),
                setting("public_url"),
                [hook],
                clock=self._context.clock,
                log=self._context.log,
            ):
                yield
        except BullpenError as error:
            raise ChannelDown("webhook_settings", str(error), error.hint or "") from None

    async def register(self) -> None:
        """Tell Telegram the URL and the secret."""
        await self._api.call(
            "setWebhook", url=self.url, secret_token=self._secret, allowed_updates=UPDATE_TYPES
        )

    async def inspect(self) -> None:
        """Raise `ChannelDown` if another program has replaced the webhook."""
        info = await self._api.call("getWebhookInfo")
        if isinstance(info, dict) and info.get("url") != self.url:
            raise ChannelDown(
                REPLACED,
                "another program has replaced or deleted the webhook of this bot",
                "Stop the other program, or create another bot with @BotFather.",
            )

    def _verify(self, request: WebhookRequest) -> bool:
        given = request.headers.get(HEADER, "")
        return hmac.compare_digest(given.encode(), self._secret.encode())


def own_url(context: ChannelContext) -> str:
    """The URL of the webhook; empty if no public URL is set."""
    public = context.setting("public_url").strip().rstrip("/")
    return f"{public}{PATH}" if public else ""


def check_secret(context: ChannelContext) -> str:
    """The secret of the webhook. Without one, everybody could post updates."""
    secret = context.setting("webhook_secret").strip()
    if not _SECRET.fullmatch(secret):
        raise ChannelDown(
            "webhook_secret",
            "the secret of the webhook is invalid" if secret else "the webhook has no secret",
            "Set 1 to 256 letters, digits, _ and - with "
            f"`bullpen config set {context.account}.webhook_secret`.",
        )
    return secret
