"""What Twilio keeps for one account: the messages of its number, and their media."""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass, field
from typing import Unpack

from tests.channels.fakes.base import FakePlatform, Options
from tests.channels.fakes.post import Post

ACCOUNT_SID = f"AC{'0' * 31}1"
AUTH_TOKEN = "fake-auth-token"  # gitleaks:allow
NUMBER = "+15550000001"
OUTBOUND, INBOUND = "outbound-api", "inbound"

File = tuple[str, str, bytes]
"""Name, type and content."""


@dataclass(slots=True)
class Message:
    """A message as Twilio keeps it."""

    sid: str
    sender: str
    to: str
    body: str
    direction: str
    created: float
    sent: float | None
    status: str
    error: int | None = None
    media: list[str] = field(default_factory=list)
    """The SIDs of its media."""
    urls: list[str] = field(default_factory=list)
    """What the bot sends, before it is fetched."""
    callback: str = ""
    variables: str = ""
    validity: str = ""
    service: str = ""


class Messages(FakePlatform):
    """The messages of one number, for SMS or WhatsApp."""

    channel: str

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.messages: list[Message] = []
        self.media: dict[str, File] = {}
        self.acked: set[str] = set()
        self.opted_out: set[str] = set()

    @property
    def prefix(self) -> str:
        """What numbers begin with."""
        return "whatsapp:" if self.channel == "whatsapp" else ""

    def sent(self, person: str = "") -> list[Message]:
        """The messages of the bot, to one person or all."""
        return [
            each
            for each in self.messages
            if each.direction == OUTBOUND and person in ("", bare(each.to))
        ]

    def parts(self, person: str) -> list[Post]:
        """What a person sees of the bot."""
        return [
            Post(each.sid, each.body, ", ".join(url.rsplit("/", 1)[-1] for url in each.urls))
            for each in self.sent(person)
            if each.status not in ("failed", "undelivered")
        ]

    def posts(self, person: str) -> list[str]:
        """The texts that a person sees of the bot."""
        return [each.text for each in self.parts(person)]

    def texts_in(self) -> list[str]:
        """The SIDs of the messages of people."""
        return [each.sid for each in self.messages if each.direction == INBOUND]

    def unacked(self) -> list[str]:
        """The SIDs of messages of people whose webhook was not answered with success."""
        return [sid for sid in self.texts_in() if sid not in self.acked]

    def recall(self, record: dict[str, object]) -> None:
        match record:
            case {"acked": str(sid)}:
                self.acked.add(sid)
            case {"message": dict(fields)}:
                found = Message(**fields)
                sids = [each.sid for each in self.messages]
                if found.sid in sids:  # its status has changed, not its place
                    self.messages[sids.index(found.sid)] = found
                else:
                    self.messages.append(found)
            case {"media": str(sid), "name": str(name), "type": str(kind), "data": str(data)}:
                self.media[sid] = (name, kind, base64.b64decode(data))

    def _find(self, sid: str) -> Message:
        return next(each for each in self.messages if each.sid == sid)

    def _keep(self, message: Message) -> None:
        if all(each is not message for each in self.messages):
            self.messages.append(message)
        self.remember({"message": asdict(message)})

    def _keep_media(self, sid: str, file: File) -> None:
        self.media[sid] = file
        name, kind, data = file
        encoded = base64.b64encode(data).decode()
        self.remember({"media": sid, "name": name, "type": kind, "data": encoded})


def bare(address: str) -> str:
    """A number without `whatsapp:`."""
    return address.removeprefix("whatsapp:")
