"""The client of an account in this process, with its database."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

from bullpen.channels.main import ChannelProcess, find_channel
from bullpen.core.answers.complete import complete
from bullpen.core.channels.chats import Access, add_chat, allow_group
from bullpen.core.channels.senders import Tier, set_tier
from bullpen.core.message import Answer, Claim, Message, ReplyTo, RunOutput
from bullpen.core.models import CHANNEL_HEALTH, MESSAGES, RESPONSES
from bullpen.core.outbox.write import send_to_person
from bullpen.core.settings import Settings
from bullpen.core.settings.accounts import AccountValues
from bullpen.core.states import MessageState
from bullpen.core.store.base import Store
from tests.conformance.verbs import Row, done, rows, try_claim
from tests.processor.working import eventually

AGENT = "coder"


def account_settings(settings: Settings, channel: str, given: Mapping[str, str]) -> Settings:
    """The settings of an account, with short retries."""
    return replace(
        settings,
        accounts=AccountValues({f"{channel}.{name}": value for name, value in given.items()}),
        default_agent=AGENT,
        delivery_lease_seconds=3,
        retry_base_seconds=1,
        retry_max_seconds=2,
    )


class Served:
    """An account, and its client, which a test starts and stops."""

    def __init__(self, store: Store, channel: str) -> None:
        self.store = store
        self.channel = channel
        self.ended = threading.Event()
        """Whether the client wanted to end its process."""
        self._process: ChannelProcess | None = None

    def add_person(self, person: str, tier: Tier = Tier.MEMBER, name: str = "Ann") -> None:
        """Give a person a tier."""
        with self.store.write() as tx:
            set_tier(tx, self.channel, person, tier, by="owner", name=name)

    def allow(self, chat: str, access: Access = Access.MEMBERS) -> None:
        """The owner allows a group."""
        with self.store.write() as tx:
            add_chat(tx, self.channel, chat, direct=False)
            allow_group(tx, self.channel, chat, access, by="owner")

    def start(self) -> None:
        """Start the client."""
        info = find_channel(self.channel, self.store.settings)
        self._process = ChannelProcess(self.store, info, self.ended.set)
        self._process.start()

    def up(self) -> None:
        """Wait until the client is connected."""
        eventually(lambda: self.state()[0] == "up", f"{self.channel} is up: {self.state()}")

    def stop(self) -> None:
        """Stop the client."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def state(self) -> tuple[str, str]:
        """The state of the channel, and its code."""
        found = rows(self.store, CHANNEL_HEALTH)
        return (found[0]["state"], found[0]["code"] or "") if found else ("", "")

    def messages(self) -> list[Row]:
        """The messages that were stored."""
        return rows(self.store, MESSAGES)

    def texts(self) -> list[str]:
        """The texts of the messages that were stored, in their order."""
        return [each["message"] for each in self.messages()]

    def stored(self, *texts: str) -> None:
        """Wait until exactly these were stored, in this order."""
        eventually(lambda: len(self.texts()) >= len(texts), f"{texts}, not {self.texts()}")
        assert self.texts() == list(texts)

    def responses(self) -> list[Row]:
        """All responses."""
        return rows(self.store, RESPONSES)

    def answer(self, text: str, **more: object) -> None:
        """Answer the message that is due."""
        claimed = self.claim()
        output = RunOutput(text=text, **more)  # type: ignore[arg-type]
        with self.store.write() as tx:
            complete(tx, claimed, output, ())

    def claim(self) -> Claim:
        """Claim what is due. On PostgreSQL, the client may have its lane locked for a moment."""
        found: list[Claim] = []

        def is_claimed() -> bool:
            claimed = try_claim(self.store)
            found.extend([] if claimed is None else [claimed])
            return bool(found)

        eventually(is_claimed, "a message can be claimed")
        return found[0]

    def run_all(self) -> list[Message]:
        """Claim and finish until no message is pending; returns them in the order of their runs."""
        ran: list[Message] = []
        while any(each["status"] == MessageState.PENDING for each in self.messages()):
            claimed = self.claim()
            ran += claimed.messages
            done(self.store, claimed.token)
        return ran

    def send(self, answer: Answer, person: str, chat: str = "", name: str = "Ann") -> int:
        """A response to a person, which answers no message; returns the id of its row."""
        with self.store.write() as tx:
            written = send_to_person(
                tx,
                answer,
                channel=self.channel,
                sender=name,
                sender_id=person,
                agent=AGENT,
                reply_to=str(ReplyTo(chat or person)),
            )
        (found,) = (int(each["id"]) for each in self.responses() if each["message_id"] == written)
        return found
