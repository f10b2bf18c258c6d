"""Updates of Telegram's Bot API as what they say. Pure: an update and the bot's identity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from zlib import crc32

from bullpen.channels.inbound import (
    Attachment,
    Chat,
    ChatChange,
    Edited,
    Inbound,
    Payload,
    Person,
    Pressed,
    Source,
    Written,
)
from bullpen.channels.incoming.commands import COMMANDS
from bullpen.core.channels.senders import Tier

UPDATE_TYPES = ("message", "edited_message", "callback_query", "my_chat_member")
"""Reactions and posts of channels are not asked for."""

MENU = {
    each.name: each.summary[:1].upper() + each.summary[1:]
    for each in COMMANDS
    if each.tier is not Tier.OWNER
}
"""The commands in the menu of each chat, with their descriptions."""

GENERAL_TOPIC = "1"
"""The first topic of a forum: messages in it have no thread id, and sends must have none."""

_FILES = {
    "document": "",
    "animation": "mp4",
    "audio": "mp3",
    "voice": "ogg",
    "video": "mp4",
    "video_note": "mp4",
}
"""The fields of files, and the ending of a name where the file has none."""

_COMMANDS = {each.name for each in COMMANDS}
"""In a group, these are for the bot without a mention as well."""

_GONE = {"left": "the bot left the chat", "kicked": "the bot was removed from the chat"}

Object = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Bot:
    """The bot's own identity."""

    id: int
    username: str


def parse_update(update: Payload, bot: Bot, now: Callable[[], int]) -> Inbound | None:
    """What an update says; None if it is of no interest."""
    if message := _object(update, "message"):
        return _read_message(message, bot)
    if message := _object(update, "edited_message"):
        return _read_edit(message, bot)
    if query := _object(update, "callback_query"):
        return _read_press(query, now())
    if member := _object(update, "my_chat_member"):
        return _read_membership(member)
    return None


def _read_message(message: Object, bot: Bot) -> Inbound | None:
    chat = _read_chat(message)
    number = _number(message, "message_id")
    key = f"{chat.id}:{number}"
    if new := message.get("migrate_to_chat_id"):
        return ChatChange(chat=chat, moved_to=str(new), keys=(key,))
    if message.get("new_chat_title"):
        return ChatChange(chat=chat, keys=(key,))
    sender = _object(message, "from")
    # An anonymous administrator or a channel writes under an id that is not a person's.
    if not sender or message.get("sender_chat") or sender.get("id") == bot.id:
        return None
    if not _is_chat_of_people(message):
        return None
    text, mentioned = _read_text(message, bot)
    files = tuple(_files(message))
    if not text and not files and not mentioned:
        return None
    if chat.direct and text.split(" ", 1)[0] == "/start":
        text = "/help"
    text = _with_quote(message, text)
    person = _read_person(sender)
    album = message.get("media_group_id")
    return Written(
        source=Source(
            chat=chat,
            person=person,
            thread=_thread(message),
            message=str(number),
            at=_number(message, "date") * 1000,
            keys=(key,),
        ),
        text=text,
        addressed=chat.direct or mentioned or _is_reply_to(message, bot),
        attachments=files,
        group=f"{chat.id}:{album}" if album else "",
        from_bot=person.bot,
    )


def _read_edit(message: Object, bot: Bot) -> Inbound | None:
    # A shared location is edited whenever the person moves.
    if "location" in message or "edit_date" not in message:
        return None
    written = _read_message(message, bot)
    if not isinstance(written, Written) or written.from_bot:
        return None
    edited = _number(message, "edit_date")
    (original,) = written.source.keys
    # Two edits may have the same second.
    text = crc32(written.text.encode(errors="replace"))
    source = Source(
        chat=written.source.chat,
        person=written.source.person,
        thread=written.source.thread,
        message=written.source.message,
        at=edited * 1000,
        keys=(f"{original}:{edited}:{text:08x}",),
    )
    return Edited(source=source, original=(original,), text=written.text)


def _read_press(query: Object, now: int) -> Pressed | None:
    message = _object(query, "message")
    value = query.get("data")
    if not message or not isinstance(value, str):
        return None  # a game, or a message that the bot sent by another's chat
    source = Source(
        chat=_read_chat(message),
        person=_read_person(_object(query, "from")),
        thread=_thread(message),
        message=str(_number(message, "message_id")),
        at=now,  # the query has no time; the message has its own, or 0 if it is old
        keys=(f"cb:{_text(query, 'id')}",),
    )
    return Pressed(source=source, value=value)


def _read_membership(member: Object) -> ChatChange:
    chat = _read_chat(member)
    now = _object(member, "new_chat_member")
    status = str(now.get("status"))
    closed = _GONE.get(status, "")
    if chat.direct and status == "kicked":
        closed = "the person has blocked the bot"
    elif status == "restricted" and now.get("can_send_messages") is False:
        closed = "the bot must not write in the chat"
    date = _number(member, "date")
    return ChatChange(chat=chat, closed=closed, keys=(f"{chat.id}:member:{date}:{status}",))


def _read_chat(message: Object) -> Chat:
    chat = _object(message, "chat")
    direct = chat.get("type") == "private"
    name = _full_name(chat) if direct else str(chat.get("title") or "")
    return Chat(id=str(_number(chat, "id")), direct=direct, name=name)


def _read_person(sender: Object) -> Person:
    return Person(
        id=str(_number(sender, "id")), name=_full_name(sender), bot=sender.get("is_bot") is True
    )


def _is_chat_of_people(message: Object) -> bool:
    return _object(message, "chat").get("type") in ("private", "group", "supergroup")


def _thread(message: Object) -> str:
    """The topic. In chats without topics, the thread id only says that a message is a reply."""
    thread = message.get("message_thread_id")
    if isinstance(thread, int) and message.get("is_topic_message") is True:
        return str(thread)
    return GENERAL_TOPIC if _object(message, "chat").get("is_forum") is True else ""


def _is_reply_to(message: Object, bot: Bot) -> bool:
    original = _object(message, "reply_to_message")
    # Without a reply of the person's own, a message in a topic replies to the topic's beginning.
    if "forum_topic_created" in original:
        return False
    return _object(original, "from").get("id") == bot.id


def _read_text(message: Object, bot: Bot) -> tuple[str, bool]:
    """The text without mentions of the bot, and whether it has one. Entities count UTF-16 units."""
    field = "text" if "text" in message else "caption"
    text = message.get(field)
    if not isinstance(text, str):
        return _describe(message), False
    units = text.encode("utf-16-le", "surrogatepass")
    mentioned = False
    for start, end, entity in reversed(_entities(message, field)):
        piece = _decode(units[start:end])
        insert = _replace(entity, piece, start, bot)
        if insert is None:
            continue
        kind = entity.get("type")
        mentioned = mentioned or kind != "text_link"
        after = _decode(units[end:])
        if not insert and start == 0:
            after = after.lstrip(" ,:")
        elif not insert and _decode(units[:start]).endswith(" "):
            after = after.removeprefix(" ")
        units = units[:start] + (insert + after).encode("utf-16-le", "surrogatepass")
    return _decode(units).strip(), mentioned


def _with_quote(message: Object, text: str) -> str:
    """The text, and below it the part of another message that the person has selected."""
    quote = _object(message, "quote")
    if quote.get("is_manual") is not True or text.startswith("/"):
        return text
    quoted = "\n".join(f"> {each}" for each in _text(quote, "text").splitlines())
    return f"{text}\n\n{quoted}" if text else quoted


def _replace(entity: Object, piece: str, start: int, bot: Bot) -> str | None:
    """The text of an entity without the mention; None if it stays as it is."""
    match entity.get("type"):
        case "mention" if piece.lower() == f"@{bot.username}".lower():
            return ""
        case "text_mention" if _object(entity, "user").get("id") == bot.id:
            return ""
        case "bot_command" if start == 0:
            command, _, name = piece.partition("@")
            if name.lower() == bot.username.lower() or (
                not name and command[1:].lower() in _COMMANDS
            ):
                return command
        case "text_link" if isinstance(url := entity.get("url"), str) and url != piece:
            return f"{piece} ({url})"
    return None


def _entities(message: Object, field: str) -> list[tuple[int, int, Object]]:
    """The entities of a text in order, with their places in bytes."""
    found = message.get("entities" if field == "text" else "caption_entities")
    placed = []
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict):
            start = 2 * _number(each, "offset")
            placed.append((start, start + 2 * _number(each, "length"), each))
    return sorted(placed, key=lambda each: each[:2])


def _describe(message: Object) -> str:
    """What a message without a text says."""
    if sticker := _object(message, "sticker"):
        return str(sticker.get("emoji") or "")
    if place := _object(message, "location"):
        return f"Location: {place.get('latitude')}, {place.get('longitude')}"
    if contact := _object(message, "contact"):
        return f"Contact: {_full_name(contact)}, {contact.get('phone_number')}"
    return ""


def _files(message: Object) -> Iterator[Attachment]:
    photos = message.get("photo")
    sizes = [each for each in photos if isinstance(each, dict)] if isinstance(photos, list) else []
    if sizes:
        yield _file(max(sizes, key=lambda each: _optional(each, "width") or 0), "photo", "jpg")
    for field, ending in _FILES.items():
        # An animation is also sent as a document, for old programs.
        if (found := _object(message, field)) and not (
            field == "document" and "animation" in message
        ):
            yield _file(found, field, ending)


def _file(found: Object, kind: str, ending: str) -> Attachment:
    name = found.get("file_name")
    if not isinstance(name, str) or not name:
        name = f"{kind}_{found.get('file_unique_id')}" + (f".{ending}" if ending else "")
    type_ = found.get("mime_type")
    return Attachment(
        name=name,
        source=_text(found, "file_id"),
        type=type_ if isinstance(type_, str) else "image/jpeg" if kind == "photo" else "",
        size=_optional(found, "file_size"),
    )


def _full_name(found: Object) -> str:
    names = (found.get("first_name"), found.get("last_name"))
    return " ".join(each for each in names if isinstance(each, str) and each)


def _object(found: Object, field: str) -> Object:
    value = found.get(field)
    return value if isinstance(value, dict) else {}


def _optional(found: Object, field: str) -> int | None:
    value = found.get(field)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(found: Object, field: str) -> int:
    value = _optional(found, field)
    if value is None:
        raise ValueError(f"the field {field} is missing or not a number")
    return value


def _text(found: Object, field: str) -> str:
    value = found.get(field)
    if not isinstance(value, str):
        raise ValueError(f"the field {field} is missing or not a text")
    return value


def _decode(units: bytes) -> str:
    return units.decode("utf-16-le", "surrogatepass")
