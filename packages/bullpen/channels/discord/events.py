"""Events of Discord, and messages of its history, as types of `inbound`.

An event is a plain mapping: its name `t`, its data `d`, whether its channel is a direct one, and
the name of the channel. A message of the history is the event that it was when it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

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
from bullpen.core.clock import SECOND

Data = Mapping[str, object]

WRITTEN_TYPES = frozenset({0, 19})
"""Plain messages and replies; all other types are notices of Discord or answers of bots."""
SLASH_COMMAND = 2
BUTTON = 3
PRIVATE_CHANNEL = 2
"""The context of an interaction in a chat without the bot, which could not be answered there."""

_EPOCH_MS = 1_420_070_400_000
_MENTION = re.compile(r"<@!?(\d+)>")


def time_of(snowflake: str) -> int:
    """When an id was made, in milliseconds."""
    return (int(snowflake) >> 22) + _EPOCH_MS


def snowflake_at(at: int) -> int:
    """The least id of a moment."""
    return max(0, at - _EPOCH_MS) << 22


def event_payload(name: str, data: Data, *, direct: bool, chat_name: str = "") -> Payload:
    """What intake takes. The token of an interaction stays out of it."""
    kept = {key: value for key, value in data.items() if key != "token"}
    return {"t": name, "d": kept, "direct": direct, "chat_name": chat_name}


def parse_event(payload: Payload, me: str) -> Inbound | None:
    """What an event says; `me` is the id of the bot."""
    data = object_of(payload.get("d"))
    if not text_of(data, "id").isdecimal():
        return None
    name, direct = payload.get("t"), payload.get("direct") is True
    chat_id = text_of(data, "channel_id" if "channel_id" in data else "id")
    chat = Chat(id=chat_id, direct=direct, name=text_of(payload, "chat_name"))
    match name:
        case "MESSAGE_CREATE":
            return _written(data, chat, me)
        case "MESSAGE_UPDATE":
            return _edited(data, chat, me)
        case "MESSAGE_DELETE":
            return _deleted(data, chat)
        case "INTERACTION_CREATE":
            return _interaction(data, chat)
        case "CHANNEL_UPDATE":
            return ChatChange(chat=chat)
        case "CHANNEL_DELETE":
            return ChatChange(chat=chat, closed="the channel is gone, or closed to the bot")
    return None


def is_own(data: Data, me: str) -> bool:
    """Whether the bot wrote this message."""
    return text_of(object_of(data.get("author")), "id") == me


def _written(data: Data, chat: Chat, me: str) -> Written | Proof | None:
    message = text_of(data, "id")
    if is_own(data, me):
        nonce = text_of(data, "nonce")
        return Proof(key=nonce, receipt=message, keys=(f"echo:{message}",)) if nonce else None
    if data.get("type", 0) not in WRITTEN_TYPES:
        return None
    return Written(
        source=_source(data, chat),
        text=_text(data, me),
        addressed=chat.direct or _is_addressed(data, me),
        attachments=tuple(_attachments(data, chat.id, message)),
        cursor=message,
        from_bot=_is_bot(data),
    )


def _edited(data: Data, chat: Chat, me: str) -> Edited | None:
    """An edit. An update without a time of editing is a preview of a link or a pin."""
    edited = text_of(data, "edited_timestamp")
    if not edited or is_own(data, me) or _is_bot(data):
        return None
    message = text_of(data, "id")
    source = _source(data, chat, keys=(f"{message}:{edited}",))
    return Edited(source=source, original=(message,), text=_text(data, me))


def _deleted(data: Data, chat: Chat) -> Deleted:
    """A deletion. Its author is known if the client has seen the message."""
    message = text_of(data, "id")
    source = _source(data, chat, keys=(f"{message}:deleted",))
    return Deleted(source=source, original=(message,))


def _interaction(data: Data, chat: Chat) -> Written | Pressed | None:
    """A slash command, or a button."""
    if not chat.id or data.get("context") == PRIVATE_CHANNEL:
        return None
    given = object_of(data.get("data"))
    if data.get("type") == SLASH_COMMAND:
        values = [str(each["value"]) for each in objects_of(given, "options") if "value" in each]
        text = " ".join([f"/{text_of(given, 'name')}", *values])
        return Written(source=_source(data, chat), text=text)
    if data.get("type") == BUTTON:
        below = text_of(object_of(data.get("message")), "id")
        source = _source(data, chat, message=below)
        return Pressed(source=source, value=text_of(given, "custom_id"))
    return None


def _source(data: Data, chat: Chat, *, message: str = "", keys: tuple[str, ...] = ()) -> Source:
    """Where something came from; its time is in its id."""
    own = text_of(data, "id")
    member = object_of(data.get("member"))
    author = object_of(data.get("author") or data.get("user") or member.get("user"))
    name = text_of(member, "nick") or text_of(author, "global_name") or text_of(author, "username")
    person = Person(id=text_of(author, "id"), name=name, bot=_is_bot(data))
    if chat.direct and not chat.name:
        chat = Chat(id=chat.id, direct=True, name=name)
    return Source(
        chat=chat, person=person, message=message or own, at=time_of(own), keys=keys or (own,)
    )


def _is_bot(data: Data) -> bool:
    """Whether a bot wrote it. A webhook has no mark of a bot, but an id."""
    return object_of(data.get("author")).get("bot") is True or "webhook_id" in data


def _is_addressed(data: Data, me: str) -> bool:
    """Whether the bot is mentioned or replied to. @everyone and roles are in other fields."""
    if any(text_of(each, "id") == me for each in objects_of(data, "mentions")):
        return True
    # Without the intent, a reply without a mention has no content.
    said = bool(_content(data)) or bool(objects_of(data, "attachments"))
    return said and is_own(object_of(data.get("referenced_message")), me)


def _text(data: Data, me: str) -> str:
    """The text without the mention of the bot; other mentions as names."""
    names = {
        text_of(each, "id"): text_of(each, "global_name") or text_of(each, "username")
        for each in objects_of(data, "mentions")
    }
    mention = rf"<@!?{re.escape(me)}>"
    # Without the look-behind, the time for a run of blanks would be the square of its length.
    content = re.sub(rf"^\s*{mention}[\s,:]*|(?<![ \t])[ \t]*{mention}", "", _content(data))

    def name(found: re.Match[str]) -> str:
        return f"@{names[found[1]]}" if names.get(found[1]) else found[0]

    return _MENTION.sub(name, content).strip()


def _content(data: Data) -> str:
    """What was written, or forwarded; the names of stickers."""
    forwarded = [
        text_of(object_of(each.get("message")), "content")
        for each in objects_of(data, "message_snapshots")
    ]
    stickers = [f":{text_of(each, 'name')}:" for each in objects_of(data, "sticker_items")]
    return "\n\n".join(each for each in (text_of(data, "content"), *forwarded, *stickers) if each)


def _attachments(data: Data, chat: str, message: str) -> Iterator[Attachment]:
    snapshots = [object_of(each.get("message")) for each in objects_of(data, "message_snapshots")]
    for holder in (data, *snapshots):
        for each in objects_of(holder, "attachments"):
            size = each.get("size")
            yield Attachment(
                name=text_of(each, "filename"),
                source=f"{text_of(each, 'url')}#{chat}/{message}/{text_of(each, 'id')}",
                type=text_of(each, "content_type"),
                size=size if isinstance(size, int) else None,
            )


def expires_at(url: str) -> int | None:
    """When the signature of an attachment's URL expires, in milliseconds."""
    found = re.search(r"[?&]ex=([0-9a-fA-F]{1,12})(?:&|$)", url)
    return int(found[1], 16) * SECOND if found else None


def object_of(value: object) -> Data:
    """The value if it is an object of JSON, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def objects_of(data: Data, key: str) -> Sequence[Data]:
    """The objects in a list of JSON."""
    value = data.get(key)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def text_of(data: Data, key: str) -> str:
    """A field that is a text, or a number such as an id; else empty."""
    value = data.get(key)
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""
