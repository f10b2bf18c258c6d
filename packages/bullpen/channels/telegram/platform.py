"""Telegram: updates by long polling or by webhook, and messages as text with entities.

A request for updates confirms the ones before it, and is only made after their commit. Telegram
keeps unconfirmed updates for 24 hours, in order, so there is nothing to catch up. It says nothing
about a message whose answer was lost, so such a part stays unknown.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Mapping
from contextlib import suppress

from bullpen.channels.failures import (
    ChannelDown,
    NotSent,
    OutcomeUnknown,
    RateLimited,
    Refused,
    SendFailed,
    Undeliverable,
)
from bullpen.channels.files.fetching import BadAnswer
from bullpen.channels.inbound import Attachment, Inbound, Payload
from bullpen.channels.platform import (
    ChannelContext,
    Download,
    Finding,
    Identity,
    Intake,
    Note,
    Place,
    Platform,
    Progress,
    Sending,
    Stage,
)
from bullpen.channels.telegram.api import BotApi, silence_loggers
from bullpen.channels.telegram.parts import Request, compose, plainer
from bullpen.channels.telegram.polling import Polling, pause_after
from bullpen.channels.telegram.updates import MENU, Bot, parse_update
from bullpen.channels.telegram.webhook import REPLACED, Webhook, check_secret, own_url
from bullpen.channels.text.telegram import fits_telegram, render_telegram
from bullpen.channels.text.tree import Document

CHECK_POLL_SECONDS = 3
WEBHOOK_CHECK_SECONDS = 300.0
DRAFT_REPEAT_MS = 20_000
"""A draft is shown for 30 seconds, typing for five."""

_TOKEN = re.compile(r"\d{1,20}:[A-Za-z0-9_-]{10,100}")


class Telegram(Platform):
    """One bot on Telegram."""

    progress_seconds = 4.5
    has_buttons = True
    chat_interval = 0.25

    def __init__(self, context: ChannelContext) -> None:
        super().__init__(context)
        silence_loggers()
        self._connected: BotApi | None = None
        self._closed = False
        self._bot = Bot(0, "")
        self._receiving = False
        self._replaced = False
        self._polling: Polling | None = None
        self._without_drafts: set[str] = set()
        self._shown: dict[str, tuple[str, int]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def _api(self) -> BotApi:
        """The connections, made when they are first used and never after `close`."""
        if self._closed:
            raise NotSent("the connections to Telegram are closed")
        if self._connected is None:
            self._connected = BotApi(self._token(), self.context.setting("api_url"))
        return self._connected

    @property
    def _by_webhook(self) -> bool:
        return self.context.setting("transport") == "webhook"

    async def start(self) -> Identity:
        """Check the token, delete an own webhook before polling, and set the menu."""
        if self._by_webhook:
            check_secret(self.context)
        try:
            me = _object(await self._api.call("getMe"))
            info = _object(await self._api.call("getWebhookInfo"))
            if not self._by_webhook and self._is_own_webhook(info):
                await self._api.call("deleteWebhook", drop_pending_updates=False)
        except RateLimited as error:
            raise ChannelDown("rate_limited", str(error), retry_seconds=error.seconds) from None
        except SendFailed as error:
            raise ConnectionError(str(error)) from None
        number = me.get("id")
        if not isinstance(number, int):
            raise ConnectionError("Telegram does not say which bot this is")
        self._bot = Bot(number, str(me.get("username", "")))
        self._without_drafts.clear()
        await _ignore_failure(self._set_menu())
        return Identity(str(number), f"@{self._bot.username}", str(me.get("first_name", "")))

    async def receive(self, intake: Intake) -> None:
        """Receive updates until cancelled."""
        self._receiving = True
        try:
            if self._by_webhook:
                await self._listen(intake)
            else:
                self._polling = self._polling or Polling(
                    self.context, self._api, self._stop_spinner
                )
                await self._polling.receive(intake)
        finally:
            self._receiving = False

    def parse(self, payload: Payload) -> Inbound | None:
        """What an update says."""
        return parse_update(payload, self._bot, self.context.clock.now)

    def fits(self, text: Document) -> bool:
        """Whether a text is small enough for one message."""
        return fits_telegram(text)

    async def send(self, sending: Sending, note: Note) -> str:
        """Send one part. A form of it that was refused is replaced by a plainer one."""
        request: Request | None = compose(sending)
        message: object = None
        while request is not None:
            try:
                message = await self._api.call(request[0], **request[1])
                break
            except Refused as error:
                if (request := plainer(request, sending, str(error))) is None:
                    raise
        number = _object(message).get("message_id")
        if not isinstance(number, int):
            raise OutcomeUnknown("the answer of Telegram has no message id")
        self._shown.pop(sending.to.chat, None)
        return str(number)

    async def newest(self, place: Place) -> bool:
        """Whether updates wait at Telegram."""
        info = _object(await self._api.call("getWebhookInfo"))
        waiting = info.get("pending_update_count")
        return isinstance(waiting, int) and waiting > 0

    async def locate(self, attachment: Attachment) -> Download:
        """The URL of a file, which is valid for an hour and has the token."""
        try:
            found = _object(await self._api.call("getFile", file_id=attachment.source))
        except Refused as error:
            raise BadAnswer(f"Telegram refused it: {error}") from None
        except SendFailed as error:
            raise ConnectionError(str(error)) from None
        path = found.get("file_path")
        if not isinstance(path, str):
            raise BadAnswer("Telegram does not offer it for download")
        return self._api.download(path)

    async def show(self, progress: Progress) -> None:
        """A draft in a private chat, typing elsewhere; both disappear on their own."""
        chat, thread = progress.to.chat, progress.to.thread
        if progress.stage not in (Stage.QUEUED, Stage.WORKING) or not chat:
            return
        message = progress.to.message
        if chat.startswith("-") or chat in self._without_drafts or not message.isdecimal():
            await self._api.call(
                "sendChatAction", chat_id=chat, action="typing", message_thread_id=thread or None
            )
            return
        now = self.context.clock.monotonic()
        text, at = self._shown.get(chat, ("", now - DRAFT_REPEAT_MS))
        if text == progress.text and now - at < DRAFT_REPEAT_MS:
            return
        self._shown[chat] = (progress.text, now)
        rendered = render_telegram(Document.parse(progress.text))
        try:
            await self._api.call(
                "sendMessageDraft",
                chat_id=chat,
                draft_id=int(message),
                text=rendered.text,
                entities=list(rendered.entities) or None,
                message_thread_id=thread or None,
            )
        except Undeliverable:
            raise
        except Refused:
            self._without_drafts.add(chat)  # typing from now on

    async def check(self) -> list[Finding]:
        """Check the token, privacy mode, the webhook, and other processes that poll."""
        found: list[Finding] = []
        try:
            me = _object(await self._api.call("getMe"))
            found.append(_check_groups(me))
            info = _object(await self._api.call("getWebhookInfo"))
            found += _check_webhook(info)
            if self._by_webhook:
                check_secret(self.context)
            elif not self._receiving and not self._is_own_webhook(info):
                await self._api.call("getUpdates", limit=1, timeout=CHECK_POLL_SECONDS)
                found.append(Finding(ok=True, code="poll", text="no other process polls the bot"))
        except ChannelDown as error:
            found.append(Finding(ok=False, code=error.code, text=error.reason, hint=error.hint))
        except SendFailed as error:
            found.append(Finding(ok=False, code="unreachable", text=str(error)))
        return found

    async def probe(self, chat: str) -> list[Finding]:
        """Whether drafts work in the owner's chat."""
        text = "progress is shown as a draft"
        try:
            await self._api.call("sendMessageDraft", chat_id=chat, draft_id=1, text="")
        except SendFailed as error:
            text = f"progress is shown as typing, because drafts do not work: {error}"
        return [Finding(ok=True, code="draft", text=text)]

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._connected is not None:
            await self._connected.close_connections()

    def _is_own_webhook(self, info: Mapping[str, object]) -> bool:
        return bool(info.get("url")) and info["url"] == own_url(self.context)

    def _token(self) -> str:
        token = self.context.setting("bot_token").strip()
        if not _TOKEN.fullmatch(token):
            raise ChannelDown(
                "token_malformed",
                "the bot token is malformed" if token else "the bot token is not set",
                "Get the token from @BotFather, for example 123456:ABC…, and run "
                f"`bullpen config set {self.context.account}.bot_token`.",
            )
        return token

    async def _set_menu(self) -> None:
        menu = [{"command": name, "description": text} for name, text in MENU.items()]
        if await self._api.call("getMyCommands") != menu:
            await self._api.call("setMyCommands", commands=menu)

    async def _listen(self, intake: Intake) -> None:
        """Take updates in at the listener, and keep the webhook registered."""
        webhook = Webhook(self.context, self._api, self._stop_spinner)
        failures = 0
        registered = connected = False
        replaced, self._replaced = self._replaced, False
        async with webhook.open(intake):
            while True:
                try:
                    await (webhook.inspect() if registered else webhook.register())
                except ChannelDown as error:
                    self._replaced = error.code == REPLACED
                    raise
                except SendFailed as error:
                    pause = pause_after(error, failures, self.context.chance)
                    failures += 1
                    connected = False
                    intake.disconnected(str(error))
                else:
                    failures, pause = 0, WEBHOOK_CHECK_SECONDS
                    # The program that replaced the webhook before may do so again.
                    if not connected and (registered or not replaced):
                        connected = True
                        intake.connected()
                    registered = True
                await asyncio.sleep(pause)

    def _stop_spinner(self, update: Payload) -> None:
        """Tell Telegram that a pressed button was taken in."""
        if query := _object(update.get("callback_query")):
            answer = self._api.call("answerCallbackQuery", callback_query_id=query.get("id"))
            task = asyncio.create_task(_ignore_failure(answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


def _check_groups(me: Mapping[str, object]) -> Finding:
    if me.get("can_join_groups") is False:
        text = "the bot cannot be added to groups"
        return Finding(ok=True, code="groups", text=text, hint="Send /setjoingroups to @BotFather.")
    if me.get("can_read_all_group_messages") is True:
        return Finding(ok=True, code="privacy_mode", text="privacy mode is off")
    return Finding(
        ok=True,
        code="privacy_mode",
        text="privacy mode is on: in groups, the bot sees commands, mentions and replies to it",
        hint="That is enough. If it is to see every message, send /setprivacy to @BotFather, then "
        "remove the bot from the group and add it again.",
    )


def _check_webhook(info: Mapping[str, object]) -> list[Finding]:
    found = []
    if error := info.get("last_error_message"):
        text = f"Telegram could not deliver to the webhook: {error}"
        hint = "Check that the proxy passes requests to the port of the channel."
        found.append(Finding(ok=False, code="webhook_failing", text=text, hint=hint))
    if waiting := info.get("pending_update_count"):
        found.append(Finding(ok=True, code="pending", text=f"{waiting} updates wait at Telegram"))
    return found


async def _ignore_failure(work: Awaitable[object]) -> None:
    """Wait for a request without which everything works."""
    with suppress(SendFailed, ChannelDown):
        await work


def _object(found: object) -> Mapping[str, object]:
    return found if isinstance(found, dict) else {}
