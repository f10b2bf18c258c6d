"""The contract between the base client and a platform.

A platform translates. `parse` turns a payload of the platform into a type of `inbound`, `send`
sends one part or raises an error of `failures`, `recover` finds out the outcome of a part without
an answer, and `missed` fetches the messages that were written while the client was down. The base
client does everything else: access, storage, order, retries, catch-up, progress and health.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from ssl import SSLContext, create_default_context
from typing import ClassVar, NamedTuple, Protocol

from bullpen.channels.inbound import Attachment, Chat, Inbound, Payload
from bullpen.channels.text.tree import Document
from bullpen.core.answers.attachments import OpenFile
from bullpen.core.clock import MINUTE, Clock
from bullpen.core.registry import ChannelInfo
from bullpen.core.registry.channel_settings import split_server

LOOPBACK = ("127.0.0.1", "::1")


class Intake(Protocol):
    """Accepts the payloads of a platform. All methods are called in the loop of the client."""

    def add(self, payload: Payload) -> asyncio.Future[None]:
        """Take this in, in the order of the calls. Acknowledge it when the future is done.

        The future fails if the store cannot be written: then do not acknowledge. A payload that
        `parse` cannot read is logged and counts as done.
        """
        ...

    def connected(self, connections: int = 1) -> None:
        """The platform can reach the client. Each call starts a catch-up."""
        ...

    def disconnected(self, reason: str) -> None:
        """The platform cannot reach the client for now; the platform's file connects again.

        What is added before `connected` is stored after the messages that were missed.
        """
        ...

    def heard(self) -> None:
        """The platform sent something, for example a keep-alive."""
        ...

    async def poll(self) -> None:
        """Take in the new payloads of the feed, from `missed`; raises the errors of `missed`.

        Only for a platform that does not push: `receive` calls this at intervals.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A chat or thread whose history is read from its cursor."""

    chat: str
    """The chat; for a thread, `cursor_chat` of its messages. Empty for the whole account."""
    direct: bool
    cursor: str
    """The place of the last message that was taken in; empty if there is none."""
    since: int
    """Messages before this time, in milliseconds, are not wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """How a file is fetched: only from these hosts, and the headers only from the first."""

    url: str = field(repr=False)
    """It may contain a credential."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    hosts: tuple[str, ...] = ()
    """Names of hosts; `.example.com` means every host below it.

    The origin of a fake on loopback, such as `http://127.0.0.1:8000`, is the only one without TLS.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a response goes."""

    chat: str
    """Empty if only the person is known."""
    thread: str = ""
    message: str = ""
    """The message that is answered."""
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A button below the last part of a response."""

    label: str
    value: str
    """At most 40 ASCII characters, such as `held:17:resume`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """One part on its way: a text or a file."""

    key: str
    """Identifies the part on every attempt, in at most 25 characters."""
    part: int
    to: Address
    text: Document | None = None
    file: OpenFile | None = None
    buttons: tuple[Button, ...] = ()
    agent: str = ""
    """The agent that answers."""
    began_at: int
    """When the present attempt began, in milliseconds."""
    expires_at: int
    window_until: int = 0
    """When the platform's time for free text ends, in milliseconds; 0 if that is unknown."""
    reference: str = ""
    """What `note` recorded in this attempt, for example the id of an upload."""
    others: frozenset[str] = frozenset()
    """The receipts of parts sent shortly before or after: a look-up must not find one of them."""


Note = Callable[[str], Awaitable[None]]
"""Records a reference of the platform before a step that cannot be taken back, for `recover`."""


class Verdict(StrEnum):
    """What a look-up says about a part without an answer."""

    FOUND = "found"
    NOT_SENT = "not_sent"
    """It did not arrive, or sending it again under the same key cannot show it twice."""
    LATER = "later"
    """Not yet known; look again in a minute."""
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, slots=True)
class Recovered:
    """The result of a look-up; a part that was found has its receipt."""

    verdict: Verdict
    receipt: str = ""


class Stage(StrEnum):
    """How far a message is, for progress."""

    QUEUED = "queued"
    WORKING = "working"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The state of a message, shown at its address. It is never the answer."""

    to: Address
    stage: Stage
    text: str = ""
    """A line such as `@coder is reading files`; may be empty."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The bot as the platform knows it."""

    id: str
    name: str = ""
    details: str = ""
    """The team, number or server, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One result of a check, in the platform's own terms."""

    ok: bool
    code: str
    text: str
    hint: str = ""


class Server(NamedTuple):
    """A server that is reached without HTTP."""

    host: str
    port: int
    tls: SSLContext | None
    """It verifies the certificate; `SSL_CERT_FILE` names more authorities. None on loopback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelContext:
    """What a platform is made with."""

    info: ChannelInfo
    """The channel, with the name of the account."""
    setting: Callable[[str], str]
    """A setting of the account by its short name, such as `bot_token`."""
    store_id: str
    """Four characters that tell this installation from others, for keys of parts."""
    directory: Path
    """A directory of the account for files that may be deleted at any time."""
    clock: Clock
    chance: Callable[[], float]
    log: logging.Logger

    @property
    def account(self) -> str:
        """The name of the account: `slack`, or `slack-sage`."""
        return self.info.name

    def server(self, name: str) -> Server:
        """The server that a setting of the form HOST:PORT names.

        Only to 127.0.0.1 and ::1 may a password go without TLS.
        """
        host, port = split_server(self.setting(name))
        is_loopback = host in LOOPBACK
        return Server(host, port, None if is_loopback else create_default_context())


class CatchUp(StrEnum):
    """How the messages that were written while the client was down are fetched."""

    NONE = "none"
    """Not at all, because the platform sends them again."""
    CHATS = "chats"
    """`missed` is called for each chat and thread."""
    ACCOUNT = "account"
    """`missed` is called once, with an empty chat and cursor."""
    FEED = "feed"
    """`missed` is called once, with an empty chat and the cursor of the account's one feed.

    Each of its payloads has its place in the feed under the key `cursor`; `Written.cursor` is not
    used."""


class Platform(ABC):
    """One account on a platform. A subclass is made in the client's loop with its context.

    All methods run in that loop and must not block it.
    """

    catch_up: ClassVar[CatchUp] = CatchUp.NONE
    progress_seconds: ClassVar[float | None] = None
    """How often progress is shown again while it lasts; None if the platform shows none."""
    leaves_marks: ClassVar[bool] = False
    """Whether progress stays (a reaction), so that it must be set right after a crash."""
    has_buttons: ClassVar[bool] = False
    reorders: ClassVar[bool] = False
    """Whether messages may arrive swapped, so that a batch is sorted by its cursors."""
    command_prefix: ClassVar[str] = "/"
    """What people write before a command; `!` if the platform keeps `/` for itself."""
    chat_interval: ClassVar[float] = 0.0
    """Seconds between two parts to one chat."""
    window_seconds: ClassVar[float | None] = None
    """For how long after a person's message free text may be sent; None if without a limit.

    The base records the end in `chats.window_until`, and passes it in `Sending.window_until`."""
    settled_ms: ClassVar[int] = 2 * MINUTE
    """By then, a part that was sent is where `recover` looks for it."""
    send_seconds: ClassVar[float] = 30.0
    """The time of one send or look-up, after which its outcome is unknown."""

    def __init__(self, context: ChannelContext) -> None:
        self.context = context

    @abstractmethod
    async def start(self) -> Identity:
        """Check the credentials; called before everything else, and again after each failure.

        Raises `ChannelDown`. An `OSError` or a time-out means that the platform is not reachable.
        """

    async def receive(self, intake: Intake) -> None:
        """Receive until cancelled. Reconnects automatically; raises `ChannelDown` if it cannot.

        By default, a feed is read every `poll_seconds`, which is a setting of the account.
        """
        if self.catch_up is not CatchUp.FEED:
            raise NotImplementedError(f"{type(self).__name__} has no method `receive`")
        await intake.poll()
        intake.connected()
        while True:
            await asyncio.sleep(int(self.context.setting("poll_seconds")))
            await intake.poll()

    @abstractmethod
    def parse(self, payload: Payload) -> Inbound | None:
        """What a payload says; None if it is of no interest. Pure: no network, no state."""

    def fits(self, text: Document) -> bool:
        """Whether a text is small enough for one part; by default, as `text_characters` says."""
        limit = self.context.info.limits.text_characters
        return limit is None or len(text.plain()) <= limit

    @abstractmethod
    async def send(self, sending: Sending, note: Note) -> str:
        """Send one part; returns the platform's receipt. Raises the errors of `failures`.

        The SDK's own retries, sleeps and unlimited time-outs must be off.
        """

    async def recover(self, sending: Sending) -> Recovered:
        """What became of a part without an answer."""
        return Recovered(Verdict.CANNOT_TELL)

    def not_found(self, sending: Sending) -> Recovered:
        """A part that a look-up has not found: it was not sent, or is not listed yet."""
        settled = self.context.clock.now() - sending.began_at > self.settled_ms
        return Recovered(Verdict.NOT_SENT if settled else Verdict.LATER)

    async def chats(self) -> Sequence[Chat] | None:
        """The chats that the bot is in, if the platform lists them."""
        return None

    async def person_name(self, person: str) -> str:
        """The name of a person, for messages without one; empty if it is not known.

        Called for people who may write to the bot, and for an unpaired person who got a code.
        """
        return ""

    async def missed(self, place: Place, limit: int) -> list[Payload]:
        """At most `limit` payloads after the cursor of a place, oldest first."""
        return []

    async def newest(self, place: Place) -> bool:
        """Whether the platform has messages after the cursor, for the alarm about silence."""
        return False

    async def locate(self, attachment: Attachment) -> Download:
        """How an attachment is fetched. A `fetching.NotTaken` is the reason given to its sender."""
        raise NotImplementedError(f"{self.context.account} has no attachments")

    async def show(self, progress: Progress) -> None:  # noqa: B027 - optional
        """Show the progress of a message. Failures are ignored."""

    async def check(self) -> list[Finding]:
        """Check the account during its setup: token, scopes, intents, other pollers."""
        return []

    async def probe(self, chat: str) -> list[Finding]:
        """Try in the owner's own chat what the platform's documentation leaves open."""
        return []

    async def close(self) -> None:  # noqa: B027 - optional
        """Close all connections. Called once, whatever happened before."""
