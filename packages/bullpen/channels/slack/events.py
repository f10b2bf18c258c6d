"""Slack's payloads as types of `inbound`: events, slash commands, buttons, and history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from bullpen.channels.failures import ChannelDown
from bullpen.channels.inbound import (
    Attachment,
    Chat,
    ChatChange,
    Deleted,
    Edited,
    Inbound,
    Payload,
    Person,
    Pressed,
    Proof,
    Source,
    Written,
)
from bullpen.channels.incoming.commands import find_command
from bullpen.channels.slack.api import Object, as_object, as_objects, as_text

METADATA_EVENT = "bullpen_part"
"""The type of the metadata on every post; its payload has the key of the part."""

WRITTEN_SUBTYPES = frozenset({"", "file_share", "thread_broadcast"})

_CLOSED = {
    "channel_archive": "the channel is archived",
    "group_archive": "the channel is archived",
    "channel_deleted": "the channel was deleted",
    "group_deleted": "the channel was deleted",
    "channel_left": "the bot was removed from the channel",
    "group_left": "the bot was removed from the channel",
    "channel_unarchive": "",
    "group_unarchive": "",
}
_TIME = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")
_MARK = re.compile(r"<([^<>]*)>")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackBot:
    """The bot and its workspace, as Slack's payloads name them."""

    user: str
    bot: str
    teams: frozenset[str]
    """The ids of its workspace, and of the organization of that."""
    agent_view: bool = False
    """Whether the app is declared as an agent, so that each direct message is a thread."""
    shared_channels: bool = False
    """Whether people of other workspaces may write, in channels shared with them."""


def event_payload(kind: str, body: Object, now: int) -> Payload:
    """A payload that Slack pushed: `kind` is the type of its envelope."""
    return {"kind": kind, "body": body, "at": now}


def history_payload(chat: str, direct: bool, message: Object, *, shared: bool = False) -> Payload:
    """A message of a chat's history; `shared` means that other workspaces share the chat."""
    return {"kind": "history", "chat": chat, "direct": direct, "shared": shared, "body": message}


def down_event(body: Object) -> ChannelDown | None:
    """The failure of the account that an event announces."""
    event = as_object(body.get("event"))
    kind = event.get("type")
    if kind == "app_uninstalled":
        return ChannelDown(kind, "the app was removed from the workspace", REINSTALL_HINT)
    if kind == "tokens_revoked" and as_object(event.get("tokens")).get("bot"):
        return ChannelDown("token_revoked", "the bot token was revoked", REINSTALL_HINT)
    return None


REINSTALL_HINT = "Install the app again at https://api.slack.com/apps, and set the new bot token."


def parse_slack(payload: Payload, bot: SlackBot) -> Inbound | None:
    """What a payload says; None if it is of no interest."""
    body = as_object(payload.get("body"))
    match payload.get("kind"):
        case "events_api":
            return _event(as_object(body.get("event")), body, bot)
        case "history":
            kind = "im" if payload.get("direct") else "channel"
            event = {"type": "message", "channel_type": kind, "channel": payload.get("chat")}
            return _event({**event, **body}, {"is_ext_shared_channel": payload.get("shared")}, bot)
        case "slash_commands":
            return _slash_command(body, payload, bot)
        case "interactive":
            return _pressed(body, bot)
    return None


def _event(event: Object, body: Object, bot: SlackBot) -> Inbound | None:
    kind = as_text(event.get("type"))
    if kind in ("message", "app_mention"):
        return _message(event, body, bot)
    if kind == "message_metadata_posted":
        return _proof(event, as_text(event.get("message_ts")), bot)
    if kind == "agent_session_stopped":
        return _stopped(event, bot)
    return _chat_change(kind, event, body, bot)


def _message(event: Object, body: Object, bot: SlackBot) -> Inbound | None:
    subtype = as_text(event.get("subtype"))
    if subtype == "message_changed":
        return _changed(event, bot)
    if subtype == "message_deleted":
        original = as_text(event.get("deleted_ts"))
        return _deleted(event, as_object(event.get("previous_message")), original, bot)
    if _is_own(event, bot):
        return _proof(event, as_text(event.get("ts")), bot)
    other_bot = "bot_id" in event or subtype == "bot_message"
    if event.get("hidden") or (subtype not in WRITTEN_SUBTYPES and not other_bot):
        return None
    if not _may_write(event, bot) or (
        body.get("is_ext_shared_channel") and not bot.shared_channels
    ):
        return None
    chat = _chat(event)
    source = _source(event, event, chat, bot)
    text, named = _without_mention(as_text(event.get("text")), bot)
    files = list(as_objects(event.get("files")))
    links = [_link(each) for each in files if each.get("is_external")]
    thread = as_text(event.get("thread_ts"))
    is_root = thread in ("", source.message)
    mentioned = named or event.get("type") == "app_mention"
    addressed = chat.direct or mentioned or event.get("parent_user_id") == bot.user
    names_nobody = not addressed and not is_root and "<@" not in text and "<!" not in text
    return Written(
        source=source,
        text="\n".join(filter(None, [plain_text(text), *links])),
        addressed=addressed,
        attachments=_attachments(files),
        cursor=source.message,
        cursor_chat="" if is_root else f"{chat.id}/{thread}",
        opens=f"{chat.id}/{source.message}" if is_root and source.thread else "",
        follows=f"{chat.id}/{thread}" if names_nobody else "",
        from_bot=other_bot,
    )


def _source(event: Object, message: Object, chat: Chat, bot: SlackBot) -> Source:
    """The source of a message; `event` is what carries it."""
    at = as_text(message.get("ts"))
    keys = [f"{chat.id}:{at}"]
    if sent := as_text(message.get("client_msg_id")):
        # One message was seen to arrive with two times.
        keys.append(f"{chat.id}:{sent}")
    return Source(
        chat=chat,
        person=_person(message),
        thread=_thread(message, chat, bot),
        message=at,
        at=to_milliseconds(at),
        keys=tuple(keys),
    )


def _thread(message: Object, chat: Chat, bot: SlackBot) -> str:
    """The thread of the answer: always one in channels, in direct chats only if there is one."""
    thread = as_text(message.get("thread_ts"))
    if chat.direct and not bot.agent_view:
        return thread
    return thread or as_text(message.get("ts"))


def _changed(event: Object, bot: SlackBot) -> Inbound | None:
    message = as_object(event.get("message"))
    before = as_object(event.get("previous_message"))
    if message.get("subtype") == "tombstone":  # deleted, with replies
        return _deleted(event, before, as_text(message.get("ts")), bot)
    if _is_own(message, bot) or "bot_id" in message or not _may_write(message, bot):
        return None
    # Slack also sends a change when it adds a preview of a link.
    edited = as_text(as_object(message.get("edited")).get("ts"))
    written = as_text(message.get("subtype")) in WRITTEN_SUBTYPES
    if not edited or not written or message.get("text") == before.get("text"):
        return None
    chat = _chat(event)
    source = _source(event, message, chat, bot)
    text, _ = _without_mention(as_text(message.get("text")), bot)
    return Edited(
        source=replace(source, keys=(f"{chat.id}:{source.message}:{edited}",)),
        original=source.keys,
        text=plain_text(text),
    )


def _deleted(event: Object, before: Object, original: str, bot: SlackBot) -> Inbound | None:
    if not original or _is_own(before, bot) or "bot_id" in before:
        return None
    chat = _chat(event)
    source = _source(event, {**before, "ts": original}, chat, bot)
    gone = replace(source, keys=(f"{chat.id}:{original}:deleted",))
    return Deleted(source=gone, original=source.keys)


def _proof(event: Object, at: str, bot: SlackBot) -> Proof | None:
    key = part_key(event, bot)
    chat = as_text(event.get("channel_id")) or as_text(event.get("channel"))
    return Proof(key=key, receipt=f"{chat}:{at}") if key else None


def part_key(message: Object, bot: SlackBot) -> str:
    """The key of a part, from its echo or history. The metadata of other bots proves nothing."""
    metadata = as_object(message.get("metadata"))
    if metadata.get("event_type") != METADATA_EVENT or not _is_own(message, bot):
        return ""
    return as_text(as_object(metadata.get("event_payload")).get("key"))


def _stopped(event: Object, bot: SlackBot) -> Written:
    """The native Stop of an agent's session."""
    chat = _chat(event)
    thread, at = as_text(event.get("thread_ts")), as_text(event.get("event_ts"))
    source = Source(
        chat=chat,
        person=Person(id=as_text(event.get("user"))),
        thread=thread,
        at=to_milliseconds(at),
        keys=(f"{chat.id}:{thread}:stop:{at}",),
    )
    return Written(source=source, text="/stop")


def _slash_command(body: Object, payload: Payload, bot: SlackBot) -> Written | None:
    """A slash command. It has no thread and no time, and it is sent only once."""
    if not _is_our_team(as_text(body.get("team_id")), bot):
        return None
    at = payload.get("at")
    command = as_text(body.get("command")).lstrip("/").lower()
    text = as_text(body.get("text")).strip()
    if find_command(f"/{command}"):
        text = f"/{command} {text}"
    elif not text or find_command(f"/{text}"):
        text = f"/{text or 'help'}"
    chat_id = as_text(body.get("channel_id"))
    source = Source(
        chat=Chat(id=chat_id, direct=chat_id.startswith("D"), name=_name(body, "channel_name")),
        person=Person(id=as_text(body.get("user_id")), name=as_text(body.get("user_name"))),
        at=at if isinstance(at, int) else 0,
        keys=(f"command:{as_text(body.get('trigger_id'))}",),
    )
    return Written(source=source, text=plain_text(text))


def _pressed(body: Object, bot: SlackBot) -> Pressed | None:
    action = next(as_objects(body.get("actions")), {})
    person = as_object(body.get("user"))
    team = as_text(person.get("team_id")) or as_text(as_object(body.get("team")).get("id"))
    value = as_text(action.get("value"))
    if body.get("type") != "block_actions" or not value or not _may_write({"team": team}, bot):
        return None
    where = as_object(body.get("channel"))
    chat_id = as_text(where.get("id"))
    message = as_object(body.get("message"))
    posted = as_text(as_object(body.get("container")).get("message_ts"))
    pressed = as_text(action.get("action_ts"))
    source = Source(
        chat=Chat(id=chat_id, direct=chat_id.startswith("D"), name=_name(where, "name")),
        person=Person(
            id=as_text(person.get("id")),
            name=as_text(person.get("name")) or as_text(person.get("username")),
        ),
        thread=as_text(message.get("thread_ts")),
        message=posted,
        at=to_milliseconds(pressed),
        keys=(f"{chat_id}:{posted}:{pressed}",),
    )
    return Pressed(source=source, value=value)


def _chat_change(kind: str, event: Object, body: Object, bot: SlackBot) -> ChatChange | None:
    keys = (f"event:{as_text(body.get('event_id'))}",)
    if kind in ("channel_rename", "group_rename"):
        channel = as_object(event.get("channel"))
        name = as_text(channel.get("name"))
        return ChatChange(
            chat=Chat(id=as_text(channel.get("id")), direct=False, name=name), keys=keys
        )
    chat = Chat(id=as_text(event.get("channel")), direct=False)
    if kind in _CLOSED:
        return ChatChange(chat=chat, closed=_CLOSED[kind], keys=keys)
    if event.get("user") != bot.user:
        return None
    if kind == "member_left_channel":
        return ChatChange(chat=chat, closed=_CLOSED["channel_left"], keys=keys)
    return ChatChange(chat=chat, keys=keys) if kind == "member_joined_channel" else None


def _chat(event: Object) -> Chat:
    chat_id = as_text(event.get("channel"))
    return Chat(id=chat_id, direct=event.get("channel_type") == "im" or chat_id.startswith("D"))


def _person(message: Object) -> Person:
    bot = "bot_id" in message or message.get("subtype") == "bot_message"
    profile = as_object(message.get("bot_profile"))
    name = as_text(message.get("username")) or as_text(profile.get("name"))
    return Person(
        id=as_text(message.get("user")) or as_text(message.get("bot_id")), name=name, bot=bot
    )


def _name(body: Object, field: str) -> str:
    """The name of a channel; Slack calls all direct chats the same."""
    name = as_text(body.get(field))
    return "" if name in ("directmessage", "privategroup") else name


def _is_own(message: Object, bot: SlackBot) -> bool:
    user = as_text(message.get("user")) or as_text(message.get("user_id"))
    return bot.user == user or bot.bot == as_text(message.get("bot_id"))


def _may_write(message: Object, bot: SlackBot) -> bool:
    """Whether the author is of the bot's own workspace, or those of others may write too."""
    team = next(
        filter(None, (as_text(message.get(each)) for each in ("user_team", "source_team", "team"))),
        "",
    )
    return bot.shared_channels or _is_our_team(team, bot)


def _is_our_team(team: str, bot: SlackBot) -> bool:
    return not team or team in bot.teams


def _without_mention(text: str, bot: SlackBot) -> tuple[str, bool]:
    """The text without mentions of the bot, and whether there was any."""
    mention = rf"<@{re.escape(bot.user)}(?:\|[^<>]*)?>"
    # Without the look-behind, the time for a run of blanks would be the square of its length.
    text, count = re.subn(rf"\A\s*(?:{mention}[\s,:]*)+|(?<![ \t])[ \t]*{mention}", "", text)
    return text.strip(), count > 0


def plain_text(text: str) -> str:
    """Slack's markup as plain text: mentions, links and escaped characters."""
    pieces, last = [], 0
    for found in _MARK.finditer(text):
        pieces += [text[last : found.start()], _mark(found[1])]
        last = found.end()
    pieces.append(text[last:])
    return "".join(pieces).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _mark(inside: str) -> str:
    target, _, label = inside.partition("|")
    if target.startswith("@"):
        return f"@{label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label or f"@{target[1:].split('^')[0]}"
    address = target.removeprefix("mailto:")
    return address if label in ("", target, address) else f"{label} ({address})"


def _attachments(files: Sequence[Object]) -> tuple[Attachment, ...]:
    return tuple(
        Attachment(
            name=as_text(each.get("name")) or as_text(each.get("title")) or "file",
            # A file that is shared with another workspace has no URL here.
            source=as_text(each.get("url_private_download"))
            or as_text(each.get("url_private"))
            or as_text(each.get("id")),
            type=as_text(each.get("mimetype")),
            size=size if isinstance(size := each.get("size"), int) else None,
        )
        for each in files
        if not each.get("is_external") and each.get("mode") not in ("tombstone", "hidden_by_limit")
    )


def _link(file: Object) -> str:
    name = as_text(file.get("title")) or as_text(file.get("name"))
    return f"{name} ({as_text(file.get('external_url')) or as_text(file.get('url_private'))})"


def to_milliseconds(at: str) -> int:
    """The time of a message, such as `1700000000.000100`."""
    if not _TIME.fullmatch(at):
        raise ValueError("a time of Slack is not a number")
    return int(Decimal(at) * 1000)


def to_time(milliseconds: int) -> str:
    """The time of Slack for a moment."""
    return f"{milliseconds // 1000}.{milliseconds % 1000 * 1000:06d}"
