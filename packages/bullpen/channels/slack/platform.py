"""Slack: one app in one workspace, by Socket Mode or HTTP events.

A part is a message with our key in its metadata, so that a part without an answer is found again.
A file has no metadata; its id is recorded before the step that shows it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal

from slack_sdk.web.async_client import AsyncWebClient

from bullpen.channels.failures import (
    ChannelDown,
    NotSent,
    OutcomeUnknown,
    RateLimited,
    Refused,
    SendFailed,
    Undeliverable,
)
from bullpen.channels.files.reachable import host_pattern
from bullpen.channels.inbound import Attachment, Chat, Inbound, Payload, Written
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
    Verdict,
)
from bullpen.channels.slack.api import (
    Object,
    as_object,
    as_objects,
    as_text,
    ask,
    new_client,
    new_session,
    next_cursor,
)
from bullpen.channels.slack.check import check_slack, probe_slack, sign_in
from bullpen.channels.slack.events import (
    METADATA_EVENT,
    REINSTALL_HINT,
    SlackBot,
    history_payload,
    parse_slack,
    part_key,
    to_time,
)
from bullpen.channels.slack.files import find_file, share_file
from bullpen.channels.slack.progress import SlackProgress
from bullpen.channels.slack.socket import SlackSocket
from bullpen.channels.slack.webhook import SlackWebhook
from bullpen.channels.text.slack import fits_slack, render_slack
from bullpen.channels.text.tree import Document
from bullpen.core.clock import MINUTE, SECOND

PAGE = 200
LOOK_BACK_MS = 10 * MINUTE
"""How far a look-up reaches back before the attempt, since Slack's clock may differ."""
SETTLED_MS = 30 * SECOND
"""Slack's history is complete after this time."""
SLACK_HOST = "slack.com"
FILE_HOSTS = ("files.slack.com",)


class Slack(Platform):
    """An account on Slack."""

    catch_up = CatchUp.CHATS
    progress_seconds = 90.0  # a status disappears after two minutes
    leaves_marks = True
    has_buttons = True
    reorders = True  # it has two connections
    command_prefix = "!"

    def __init__(self, context: ChannelContext) -> None:
        super().__init__(context)
        self._web: AsyncWebClient | None = None
        self._bot = SlackBot(user="", bot="", teams=frozenset())
        self._progress: SlackProgress | None = None
        self._names: dict[str, str] = {}
        self._shared: set[str] = set()
        """The channels that other workspaces share; the history does not say it."""

    @property
    def web(self) -> AsyncWebClient:
        """The SDK's client, made in the loop."""
        if self._web is None:
            setting, log = self.context.setting, self.context.log
            self._web = new_client(setting("bot_token"), setting("api_url"), new_session(), log)
        return self._web

    async def start(self) -> Identity:
        """Check the bot token, which may have been replaced since the last time."""
        await self.close()
        with _as_connection_error():
            signed_in = await sign_in(self.web, self.context)
        self._bot = signed_in.bot
        self._progress = SlackProgress(self.web, self._bot.agent_view)
        return signed_in.identity

    async def receive(self, intake: Intake) -> None:
        """Receive by the transport of the account."""
        if self.context.setting("transport") == "http":
            await SlackWebhook(self.context).receive(intake)
        else:
            await self._socket().receive(intake)

    def _socket(self) -> SlackSocket:
        context = self.context
        token = context.setting("app_token")
        return SlackSocket(token, self.web, context.clock, context.chance, context.log)

    def parse(self, payload: Payload) -> Inbound | None:
        """What a payload says."""
        return parse_slack(payload, self._bot)

    def fits(self, text: Document) -> bool:
        """Whether one message can carry the text."""
        return fits_slack(text)

    async def send(self, sending: Sending, note: Note) -> str:
        """Post a text, or share a file."""
        chat = sending.to.chat or await self._open_chat(sending.to.person)
        try:
            if sending.file is not None:
                return await share_file(self.web, sending, sending.file, chat, note)
            return await self._post(sending, chat)
        except Refused as error:
            if error.code == "missing_scope" and sending.file is None:
                raise ChannelDown(error.code, str(error), REINSTALL_HINT) from None
            raise

    async def _post(self, sending: Sending, chat: str) -> str:
        assert sending.text is not None
        rendered = render_slack(sending.text)
        if not rendered.blocks:
            raise Refused("the text has nothing that people can see")
        blocks = [dict(each) for each in rendered.blocks]
        if sending.buttons:
            blocks.append(_actions(sending))
        name = sending.agent if self.context.setting("agent_names") == "on" else ""
        answer = await ask(
            self.web.chat_postMessage(
                channel=chat,
                text=rendered.text,
                blocks=blocks,
                thread_ts=sending.to.thread or None,
                username=name or None,
                metadata={"event_type": METADATA_EVENT, "event_payload": {"key": sending.key}},
                unfurl_links=False,
                unfurl_media=False,
                link_names=False,
                parse="none",
                mrkdwn=False,
            )
        )
        at = as_text(answer.get("ts"))
        if not at:
            raise OutcomeUnknown("Slack named no message")
        return f"{as_text(answer.get('channel')) or chat}:{at}"

    async def _open_chat(self, person: str) -> str:
        """The direct chat with a person. Opening it twice has no effect."""
        try:
            answer = await ask(self.web.conversations_open(users=person))
        except OutcomeUnknown as error:
            raise NotSent("the direct chat was not opened", error.code) from None
        chat = as_text(as_object(answer.get("channel")).get("id"))
        if not chat:
            raise Undeliverable("there is no direct chat with the person")
        return chat

    async def recover(self, sending: Sending) -> Recovered:
        """Look for the key of the part in the history, or for the shares of the file."""
        try:
            posted = await self._find_post(sending)
            if sending.text is not None or posted.verdict is Verdict.FOUND:
                return posted
            # A file that Slack refused was replaced by a text with the key of the part.
            return await find_file(self.web, sending, self.context.clock.now())
        except Refused as error:
            self.context.log.warning("the part %s cannot be looked up: %s", sending.key, error)
            return Recovered(Verdict.CANNOT_TELL)

    async def _find_post(self, sending: Sending) -> Recovered:
        chat = sending.to.chat or await self._open_chat(sending.to.person)
        oldest = to_time(max(0, sending.began_at - LOOK_BACK_MS))
        looked_at = self.context.clock.now()
        async for message in self._history(chat, sending.to.thread, oldest):
            if part_key(message, self._bot) == sending.key:
                return Recovered(Verdict.FOUND, f"{chat}:{as_text(message.get('ts'))}")
        settled = looked_at - sending.began_at >= SETTLED_MS
        return Recovered(Verdict.NOT_SENT if settled else Verdict.LATER)

    async def _history(self, chat: str, thread: str, oldest: str) -> AsyncIterator[Object]:
        """The messages of a chat or thread after a time, in no order."""
        cursor = ""
        while True:
            web, page = self.web, cursor or None
            if thread:
                call = web.conversations_replies(
                    channel=chat,
                    ts=thread,
                    oldest=oldest,
                    limit=PAGE,
                    include_all_metadata=True,
                    cursor=page,
                )
            else:
                call = web.conversations_history(
                    channel=chat, oldest=oldest, limit=PAGE, include_all_metadata=True, cursor=page
                )
            answer = await ask(call)
            for message in as_objects(answer.get("messages")):
                yield message
            cursor = next_cursor(answer)
            if not cursor:
                return

    async def chats(self) -> Sequence[Chat] | None:
        """The channels and direct chats of the bot."""
        found: list[Chat] = []
        cursor = ""
        with _as_connection_error():
            while True:
                answer = await ask(
                    self.web.users_conversations(
                        types="public_channel,private_channel,mpim,im",
                        exclude_archived=True,
                        limit=PAGE,
                        cursor=cursor or None,
                    )
                )
                for each in as_objects(answer.get("channels")):
                    chat = Chat(
                        id=as_text(each.get("id")),
                        direct=each.get("is_im") is True,
                        name=_name(each),
                    )
                    found.append(chat)
                    if each.get("is_ext_shared"):
                        self._shared.add(chat.id)
                    else:
                        self._shared.discard(chat.id)
                cursor = next_cursor(answer)
                if not cursor:
                    return found

    async def person_name(self, person: str) -> str:
        """The display name of a person."""
        if person not in self._names:
            try:
                user = as_object((await ask(self.web.users_info(user=person))).get("user"))
            except SendFailed:
                return ""
            profile = as_object(user.get("profile"))
            names = (profile.get("display_name"), profile.get("real_name"), user.get("name"))
            self._names[person] = next(filter(None, map(as_text, names)), "")
        return self._names[person]

    async def missed(self, place: Place, limit: int) -> list[Payload]:
        """The messages of people after the cursor. Slack gives the newest first."""
        chat, _, thread = place.chat.partition("/")
        found: dict[str, Object] = {}
        oldest = max(place.cursor or "0", to_time(place.since), key=Decimal)
        try:
            with _as_connection_error():
                async for message in self._history(chat, thread, oldest):
                    at = as_text(message.get("ts"))
                    if Decimal(at) > Decimal(oldest):
                        found[at] = message
        except Refused as error:
            self.context.log.warning("the chat %s cannot be read: %s", place.chat, error)
        shared = chat in self._shared
        payloads = [
            history_payload(chat, place.direct, found[at], shared=shared)
            for at in sorted(found, key=Decimal)
        ]
        return [each for each in payloads if isinstance(self.parse(each), Written)][:limit]

    async def newest(self, place: Place) -> bool:
        """Whether there are messages of people after the cursor."""
        return bool(await self.missed(place, 1))

    async def locate(self, attachment: Attachment) -> Download:
        """The URL of a file. The bot token is for Slack's own hosts only."""
        url = attachment.source
        if "://" not in url:  # a file of another workspace: only its id was in the message
            with _as_connection_error():
                file = as_object((await ask(self.web.files_info(file=url))).get("file"))
            url = as_text(file.get("url_private_download")) or as_text(file.get("url_private"))
        server = host_pattern(self.context.setting("api_url"))
        hosts = FILE_HOSTS if server == SLACK_HOST else (*FILE_HOSTS, server)
        headers = {"Authorization": f"Bearer {self.context.setting('bot_token')}"}
        return Download(url=url, headers=headers, hosts=hosts)

    async def show(self, progress: Progress) -> None:
        """Show a status in the thread, or a reaction."""
        if self._progress is not None:
            await self._progress.show(progress)

    async def check(self) -> list[Finding]:
        """Check the tokens, the scopes and the connections of other processes."""
        return await check_slack(self.web, self.context)

    async def probe(self, chat: str) -> list[Finding]:
        """Post, read and delete messages in the owner's chat, which may be named by the person."""
        if chat.startswith(("U", "W")):
            with _as_connection_error():
                chat = await self._open_chat(chat)
        return await probe_slack(self.web, self.context, chat)

    async def close(self) -> None:
        """Close the connections to the Web API."""
        if self._web is not None and self._web.session is not None:
            await self._web.session.close()
            self._web = None


@contextmanager
def _as_connection_error() -> Iterator[None]:
    """A request that only reads may be repeated, so its failure is a lost connection."""
    try:
        yield
    except (RateLimited, Refused):
        raise
    except SendFailed as error:
        raise ConnectionError(str(error)) from None


def _name(channel: Object) -> str:
    return "" if channel.get("is_im") else as_text(channel.get("name"))


def _actions(sending: Sending) -> dict[str, object]:
    """The buttons; the id of an action is unique in its block."""
    elements = [
        {
            "type": "button",
            "action_id": f"bullpen_{number}",
            "text": {"type": "plain_text", "text": each.label, "emoji": False},
            "value": each.value,
        }
        for number, each in enumerate(sending.buttons)
    ]
    return {"type": "actions", "elements": elements}
