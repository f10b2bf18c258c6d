"""An account on Telegram, served by the client in this process, against the fake."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from bullpen.channels.main import ChannelProcess, find_channel
from bullpen.core.answers.complete import complete
from bullpen.core.channels.chats import Access, add_chat, allow_group
from bullpen.core.channels.senders import Tier, set_tier
from bullpen.core.message import Answer, ReplyTo, RunOutput
from bullpen.core.models import CHANNEL_HEALTH, MESSAGES, RESPONSES
from bullpen.core.outbox.write import send_to_person
from bullpen.core.queue.claim import claim
from bullpen.core.settings.accounts import AccountValues
from bullpen.core.store.base import Store
from tests.channels.fakes.telegram import TOKEN, FakeTelegram
from tests.channels.telegram.double import CHAT, GROUP, PERSON
from tests.conformance.verbs import Row, hire, rows
from tests.processor.working import eventually
from tests.stores import Stores

AGENT = "coder"


class Served:
    """The account, its database and the fake."""

    def __init__(self, store: Store, fake: FakeTelegram) -> None:
        self.store, self.fake = store, fake
        self._process: ChannelProcess | None = None
        self._ended = threading.Event()

    def start(self) -> None:
        """Start the client, and wait until it is connected."""
        info = find_channel("telegram", self.store.settings)
        self._process = ChannelProcess(self.store, info, self._ended.set)
        self._process.start()
        eventually(lambda: self.state()[:1] == ["up"], "telegram is up")

    def stop(self) -> None:
        """Stop the client."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def state(self) -> list[str]:
        """The state of the channel, and its code."""
        return [text for each in rows(self.store, CHANNEL_HEALTH) for text in _state(each)]

    def let_in(self, group: str = GROUP) -> None:
        """Let a group in, for paired people."""
        with self.store.write() as tx:
            add_chat(tx, "telegram", group, direct=False)
            allow_group(tx, "telegram", group, Access.MEMBERS, by="owner")

    def messages(self) -> list[Row]:
        """The messages that were stored."""
        return rows(self.store, MESSAGES)

    def responses(self) -> list[Row]:
        """All responses."""
        return rows(self.store, RESPONSES)

    def stored(self, *texts: str) -> None:
        """Wait until exactly these texts were stored, in this order."""
        eventually(lambda: len(self.messages()) >= len(texts), f"{texts} are stored")
        assert [each["message"] for each in self.messages()] == list(texts)

    def claim(self) -> int:
        """Claim what is due; returns the number of messages."""
        with self.store.write() as tx:
            claimed = claim(tx, "worker-1")
        return 0 if claimed is None else len(claimed.messages)

    def answer(self, text: str) -> None:
        """Answer the message that is due."""
        with self.store.write() as tx:
            claimed = claim(tx, "worker-1")
        assert claimed is not None
        with self.store.write() as tx:
            complete(tx, claimed, RunOutput(text=text), ())

    def respond(self, text: str) -> None:
        """A response that answers no message."""
        with self.store.write() as tx:
            send_to_person(
                tx,
                Answer(message=text),
                channel="telegram",
                sender="Ann",
                sender_id=str(PERSON),
                agent=AGENT,
                reply_to=str(ReplyTo(CHAT)),
            )


def _state(row: Row) -> tuple[str, str]:
    return str(row["state"]), str(row["code"] or "")


@contextmanager
def serving(stores: Stores, fake: FakeTelegram, **changes: str) -> Iterator[Served]:
    """An account with an agent and a paired person, whose client is connected."""
    given = {"bot_token": TOKEN, "api_url": fake.url, **changes}
    settings = replace(
        stores.settings("sqlite"),
        accounts=AccountValues({f"telegram.{name}": value for name, value in given.items()}),
        default_agent=AGENT,
        retry_base_seconds=1,
        retry_max_seconds=2,
    )
    with stores.opened(settings) as store:
        hire(store, AGENT)
        with store.write() as tx:
            set_tier(tx, "telegram", str(PERSON), Tier.MEMBER, by="owner", name="Ann")
        served = Served(store, fake)
        try:
            served.start()
            yield served
        finally:
            served.stop()
