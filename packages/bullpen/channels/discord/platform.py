"""Discord: direct messages, and mentions in channels and threads of servers, by discord.py.

Each part is sent with a nonce of its own, for which Discord keeps one message for some minutes, so
that another attempt cannot show it twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence

import aiohttp
import discord
from yarl import URL

from bullpen.channels.discord.check import check_account, probe_chat
from bullpen.channels.discord.dispatch import Dispatch
from bullpen.channels.discord.events import (
    Data,
    event_payload,
    expires_at,
    is_own,
    object_of,
    objects_of,
    parse_event,
    snowflake_at,
    text_of,
)
from bullpen.channels.discord.gateway import Gateway
from bullpen.channels.discord.interactions import Interactions, register_commands
from bullpen.channels.discord.rest import PAGE, Limits, Rest, ThreadClosed, token_hint
from bullpen.channels.discord.servers import Servers
from bullpen.channels.failures import (
    ChannelDown,
    NotSent,
    OutcomeUnknown,
    Refused,
)
from bullpen.channels.inbound import Attachment, Chat, Inbound, Payload, Written
from bullpen.channels.incoming.commands import COMMANDS
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
from bullpen.channels.text.discord import fits_discord, render_discord
from bullpen.channels.text.tree import Document
from bullpen.core.clock import MINUTE, SECOND

CDN_HOSTS = ("cdn.discordapp.com", "media.discordapp.net")
NONCE_MS = MINUTE
"""Discord promises to remember a nonce for some minutes."""
CLOCK_MARGIN_MS = 5 * SECOND
START_SECONDS = 30.0
MAX_REMEMBERED = 2_000

SUPPRESS_EMBEDS = 1 << 2
UNKNOWN_MESSAGE = 10008
INTENT_FLAGS = 1 << 18 | 1 << 19
"""Message content is granted, or switched on for a bot in few servers."""


_UNREADABLE = (ValueError, KeyError, TypeError)
"""What the SDK raises at an answer of another form."""


class Discord(Platform):
    """One bot on Discord."""

    catch_up = CatchUp.CHATS
    progress_seconds = 8.0
    has_buttons = True
    pauses: tuple[float, ...] = (0.0, 1.0, 2.0, 5.0, 15.0, 30.0, 60.0)
    """Before connecting again, in seconds."""

    def __init__(self, context: ChannelContext) -> None:
        super().__init__(context)
        # The SDK logs URLs with the tokens of interactions, and at its lowest level whole events.
        logging.getLogger("discord").setLevel(logging.ERROR)
        self._limits = Limits(context.clock)
        self._servers = Servers(context.clock)
        self._client: discord.Client | None = None
        self._rest: Rest
        self._interactions: Interactions | None = None
        self._me = self._application = ""
        self._content_on = False
        self._direct: dict[str, str] = {}
        self._began: OrderedDict[str, int] = OrderedDict()

    async def start(self) -> Identity:
        await self.close()
        client = discord.Client(
            intents=discord.Intents(guilds=True, guild_messages=True, dm_messages=True),
            allowed_mentions=discord.AllowedMentions.none(),
            max_messages=None,
            chunk_guilds_at_startup=False,
        )
        self._rest = Rest(self.context.setting("api_url"), self.context.account, self._limits)
        client.http = client._connection.http = self._rest
        self._client = client
        async with asyncio.timeout(START_SECONDS):
            try:
                await client.login(self.context.setting("bot_token"))
            except discord.LoginFailure as error:
                hint = token_hint(self.context.account)
                raise ChannelDown("token_invalid", "Discord refused the bot token", hint) from error
            except discord.RateLimited as error:
                raise ChannelDown(
                    "rate_limited", "Discord asks to wait", retry_seconds=error.retry_after
                ) from error
            except (*_UNREADABLE, discord.DiscordException, aiohttp.ClientError) as error:
                raise ConnectionError(f"the login failed ({type(error).__name__})") from error
            assert client.user is not None
            assert client.application is not None
            self._me, self._application = str(client.user.id), str(client.application.id)
            self._content_on = bool(client.application.flags.value & INTENT_FLAGS)
            client._connection._intents.message_content = self._content_on
            self._interactions = Interactions(self._rest, self._application, self.context.log)
            commands = {each.name: each.summary for each in COMMANDS}
            await register_commands(
                self._rest, self._application, commands, self.context.directory, self.context.log
            )
        return Identity(self._me, client.user.name, f"application {client.application.name}")

    async def receive(self, intake: Intake) -> None:
        assert self._client is not None, "not started"
        assert self._interactions is not None
        dispatch = Dispatch(intake, self._servers, self._interactions)
        gateway = Gateway(self._client, self._rest, dispatch, self.context, self.pauses)
        try:
            await gateway.run()
        finally:
            dispatch.stop()

    def parse(self, payload: Payload) -> Inbound | None:
        return parse_event(payload, self._me)

    def fits(self, text: Document) -> bool:
        return fits_discord(text)

    async def send(self, sending: Sending, note: Note) -> str:
        tried = sending.key in self._began
        _remember(self._began, sending.key, self._began.get(sending.key, sending.began_at))
        try:
            receipt = await self._send(sending, note)
        except (NotSent, Refused, ChannelDown):
            if not tried:
                del self._began[sending.key]
            raise
        self._began.pop(sending.key, None)
        if self._interactions is not None:
            self._interactions.answered(sending.to.message)
        return receipt

    async def _send(self, sending: Sending, note: Note) -> str:
        chat = sending.to.chat or await self._direct_chat(sending.to.person)
        try:
            return await self._post(chat, sending)
        except ThreadClosed:
            parent = await self._parent(chat)
            if not parent:
                raise
            await note(parent)
            return await self._post(parent, sending)

    async def _post(self, chat: str, sending: Sending) -> str:
        body: dict[str, object] = {
            "content": "" if sending.text is None else render_discord(sending.text),
            "nonce": sending.key,
            "enforce_nonce": True,
            "allowed_mentions": {"parse": [], "replied_user": False},
            "flags": SUPPRESS_EMBEDS,
        }
        if sending.buttons:
            body["components"] = [{"type": 1, "components": _buttons(sending)}]
        if self._is_reply(chat, sending):
            body["message_reference"] = {
                "message_id": sending.to.message,
                "fail_if_not_exists": False,
            }
        file = None if sending.file is None else (sending.file.name, sending.file.file)
        with self._rest.sending():
            try:
                return await self._rest.create_message(chat, body, file)
            except discord.HTTPException as error:
                if error.code == UNKNOWN_MESSAGE:
                    return f"deleted:{sending.key}"  # an earlier attempt arrived, and was deleted
                raise

    def _is_reply(self, chat: str, sending: Sending) -> bool:
        """Whether a part refers to its message, which in a direct chat would only be noise."""
        if sending.part or not sending.to.message or chat != sending.to.chat:
            return False
        slash = self._interactions is not None and self._interactions.is_open(sending.to.message)
        return chat in self._servers.channels and not slash

    async def _direct_chat(self, person: str) -> str:
        """The direct chat with a person, which is opened if there is none."""
        if person not in self._direct:
            try:
                with self._rest.sending():
                    opened = await self._rest.start_private_message(person)
                self._direct[person] = text_of(object_of(opened), "id")
            except OutcomeUnknown as error:
                raise NotSent(f"the direct chat was not opened: {error}") from error
        if not self._direct[person]:
            del self._direct[person]
            raise NotSent("the direct chat was not opened")
        return self._direct[person]

    async def _parent(self, thread: str) -> str:
        """The channel of a thread; empty if it has none."""
        known = self._servers.channels.get(thread)
        if known is not None:
            return known.parent
        try:
            with self._rest.reading():
                return text_of(await self._rest.get(f"/channels/{int(thread)}"), "parent_id")
        except OSError as error:
            raise NotSent(f"the channel of the thread was not found: {error}") from error

    async def recover(self, sending: Sending) -> Recovered:
        began = self._began.get(sending.key, sending.began_at)
        if self.context.clock.now() - began < NONCE_MS:
            return Recovered(Verdict.NOT_SENT)  # another attempt gets the same message
        chat = sending.reference or sending.to.chat
        chat = chat or await self._direct_chat(sending.to.person)
        with self._rest.reading():
            try:
                after = snowflake_at(began - CLOCK_MARGIN_MS)
                found = await self._rest.history(chat, after, PAGE, self._is_own)
            except (discord.Forbidden, discord.NotFound):
                return Recovered(Verdict.CANNOT_TELL)
        for each in found:
            if self._is_same(each, sending):
                return Recovered(Verdict.FOUND, text_of(each, "id"))
        return Recovered(Verdict.NOT_SENT)

    def _is_own(self, message: Data) -> bool:
        return is_own(message, self._me)

    def _is_same(self, message: Data, sending: Sending) -> bool:
        """Whether a message of the bot is this part. The history may have no nonces."""
        if nonce := text_of(message, "nonce"):
            return nonce == sending.key
        if text_of(message, "id") in sending.others:
            return False
        content = text_of(message, "content")
        if sending.text is None:
            return not content and bool(objects_of(message, "attachments"))
        return content == render_discord(sending.text).strip()

    async def chats(self) -> Sequence[Chat]:
        names = {each: self._servers.name(each) for each in self._servers.channels}
        return [Chat(id=each, direct=False, name=name) for each, name in names.items()]

    async def missed(self, place: Place, limit: int) -> list[Payload]:
        after = max(int(place.cursor or 0), snowflake_at(place.since))
        newest = self._servers.newest(place.chat)
        if newest is not None and newest <= after:
            return []
        with self._rest.reading():
            try:
                found = await self._rest.history(
                    place.chat, after, limit, lambda each: not self._is_own(each)
                )
            except (discord.Forbidden, discord.NotFound) as error:
                self.context.log.info("the history of %s cannot be read: %s", place.chat, error)
                return []
        name = self._servers.name(place.chat)
        return [
            event_payload("MESSAGE_CREATE", each, direct=place.direct, chat_name=name)
            for each in found
        ]

    async def newest(self, place: Place) -> bool:
        written = [self.parse(each) for each in await self.missed(place, PAGE)]
        return any(
            isinstance(each, Written) and each.addressed and not each.from_bot for each in written
        )

    async def locate(self, attachment: Attachment) -> Download:
        url, _, place = attachment.source.rpartition("#")
        expires = expires_at(url)
        if expires is not None and expires < self.context.clock.now() + MINUTE:
            url = await self._renewed(place) or url
        api = URL(self.context.setting("api_url"))
        local = (str(api.origin()),) if api.scheme == "http" else ()
        return Download(url=url, hosts=(*CDN_HOSTS, *local))

    async def _renewed(self, place: str) -> str:
        """The present URL of an attachment, since the one that came with it has expired."""
        chat, message, attachment = place.split("/")
        with self._rest.reading():
            found = object_of(await self._rest.get_message(chat, message))
        snapshots = [
            object_of(each.get("message")) for each in objects_of(found, "message_snapshots")
        ]
        for holder in (found, *snapshots):
            for each in objects_of(holder, "attachments"):
                if text_of(each, "id") == attachment:
                    return text_of(each, "url")
        return ""

    async def show(self, progress: Progress) -> None:
        if progress.stage in (Stage.QUEUED, Stage.WORKING) and progress.to.chat:
            with self._rest.reading():
                await self._rest.send_typing(progress.to.chat)

    async def check(self) -> list[Finding]:
        return await check_account(self._rest, self._application, self._content_on)

    async def probe(self, chat: str) -> list[Finding]:
        nonce = f"p{self.context.store_id}{self.context.clock.now()}"[:25]
        return await probe_chat(self._rest, chat, nonce)

    async def close(self) -> None:
        if self._interactions is not None:
            await self._interactions.close()
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _buttons(sending: Sending) -> list[dict[str, object]]:
    return [
        {"type": 2, "style": 2, "label": each.label[:80], "custom_id": each.value}
        for each in sending.buttons
    ]


def _remember(kept: OrderedDict[str, int], key: str, value: int) -> None:
    """Keep a value, and forget the oldest if there are too many."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > MAX_REMEMBERED:
        kept.popitem(last=False)
