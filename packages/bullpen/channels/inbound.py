"""What a platform tells the base client: messages, edits, buttons, proofs and changes of chats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bullpen.core.text import visible_line

MAX_NAME_CHARS = 200
MAX_ID_CHARS = 600
"""Longer ids do not fit into an index of the database."""
MAX_TIME = 1 << 53

Payload = Mapping[str, object]
"""What the platform pushed, or a look-up found, as JSON. `parse` reads both in the same way.

In a feed, `cursor` is its place there. It counts also if `parse` finds nothing of interest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A chat on the platform."""

    id: str
    direct: bool
    """Whether it is between one person and the bot."""
    name: str = ""

    def __post_init__(self) -> None:
        _check_ids(self.id)
        object.__setattr__(self, "name", _shown(self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """An author. Only the id identifies; the name is shown."""

    id: str
    name: str = ""
    bot: bool = False

    def __post_init__(self) -> None:
        _check_ids(self.id)
        object.__setattr__(self, "name", _shown(self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file of a message, not fetched yet."""

    name: str
    source: str
    """The URL, or the platform's id of the file."""
    type: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where something came from, and when it was written."""

    chat: Chat
    person: Person
    thread: str = ""
    message: str = ""
    """The platform's id of the message that an answer refers to."""
    at: int
    """When it was written, in milliseconds."""
    keys: tuple[str, ...]
    """Its identities on the platform. What has one of them in common was taken in before."""

    def __post_init__(self) -> None:
        _check_ids(self.thread, self.message, *self.keys)
        object.__setattr__(self, "at", min(max(self.at, 0), MAX_TIME))


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A message of a person. A native slash command is the same text typed: `/agents`.

    The platform's own way to stop a run is the text `/stop`.
    """

    source: Source
    text: str
    """Without the mention of the bot."""
    addressed: bool = True
    """Whether it is for the bot: in a direct chat, with a mention, or as a reply to the bot."""
    attachments: tuple[Attachment, ...] = ()
    cursor: str = ""
    """Its place in the history of `cursor_chat`, from which `missed` continues."""
    cursor_chat: str = ""
    """The chat or thread that the cursor belongs to; empty for `source.chat`."""
    opens: str = ""
    """The thread that replies to it would be in, as their `cursor_chat`.

    Catch-up reads it from `cursor` on, also if no reply was ever seen. Empty if there is none."""
    follows: str = ""
    """The thread of a message that names nobody, as `cursor_chat`.

    It is for the bot if the bot takes part in that thread."""
    group: str = ""
    """Equal for the messages of one album, which are answered together."""
    from_bot: bool = False
    """Whether another bot wrote it: stored nowhere unless the owner has let bots in."""

    def __post_init__(self) -> None:
        _check_ids(self.cursor, self.cursor_chat, self.opens, self.follows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """A person changed the text of a message."""

    source: Source
    """Its keys identify this edit; `original` has the keys of the message."""
    original: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """A person deleted a message."""

    source: Source
    original: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressed:
    """A person pressed a button."""

    source: Source
    value: str
    """The value of the button, such as `held:17:resume`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The outcome of a part, from its echo, an event with its key, or a status callback."""

    key: str
    """The key of the part, `Sending.key`."""
    receipt: str
    failed: str = ""
    """Why it did not arrive after all; empty if it arrived."""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatChange:
    """A chat was renamed, has moved, or was closed to the bot."""

    chat: Chat
    moved_to: str = ""
    closed: str = ""
    """Why nothing can be sent there any more; empty if it is open."""
    opted_out: bool | None = None
    """Whether the person wants no more messages; None if that did not change."""
    keys: tuple[str, ...] = ()


Inbound = Written | Edited | Deleted | Pressed | Proof | ChatChange


def _check_ids(*ids: str) -> None:
    """Raise ValueError for an id that no platform has: the database could not store it."""
    for each in ids:
        if len(each) > MAX_ID_CHARS or not each.isprintable():
            raise ValueError("an id is too long, or has a control character")


def _shown(name: str) -> str:
    """A name as every database, log and terminal can have it: people choose their own."""
    if name.isprintable() and len(name) <= MAX_NAME_CHARS:
        return name
    return visible_line(name)[:MAX_NAME_CHARS]
