"""One account served in this process, against a fake of its platform, on each database."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from zlib import crc32

import pytest

from bullpen.channels import Platform
from bullpen.channels.main import ChannelProcess, find_channel
from bullpen.core.answers.complete import complete
from bullpen.core.channels.chats import Access, add_chat, allow_group
from bullpen.core.channels.senders import Tier, set_tier
from bullpen.core.clock import Clock
from bullpen.core.message import Answer, ReplyTo, RunOutput
from bullpen.core.models import CHANNEL_HEALTH, MESSAGES, RESPONSES
from bullpen.core.outbox.write import send_to_person
from bullpen.core.queue.claim import claim
from bullpen.core.settings import Settings
from bullpen.core.settings.accounts import AccountValues
from bullpen.core.store.base import Store
from tests.channels.conformance.kinds import KINDS, Kind
from tests.channels.conformance.quick import waits
from tests.channels.fakes.harness import Harness
from tests.conformance.verbs import Row, hire, rows
from tests.processor.working import eventually
from tests.stores import Stores

AGENT = "coder"
ALL_STORES = "BULLPEN_TEST_ALL_STORES"
MEMBERS = 6
"""The people who are paired in every test."""


class Account:
    """One account, its database, and its platform."""

    def __init__(self, store: Store, kind: Kind, platform: Harness) -> None:
        self.store = store
        self.kind = kind
        self.platform = platform
        self.channel = platform.channel
        self._process: ChannelProcess | None = None
        self.ended = threading.Event()

    def start(self) -> None:
        """Start the client."""
        info = find_channel(self.channel, self.store.settings)
        self._process = ChannelProcess(self.store, info, self.ended.set)
        self._process.start()

    def stop(self) -> None:
        """Stop the client."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def client_platform(self) -> Platform:
        """The platform of the client."""
        assert self._process is not None
        return self._process._client._platform

    def up(self) -> None:
        """Wait until the client is connected."""
        eventually(lambda: self.state()[0] == "up", f"{self.channel} is up: {self.state()}")

    def state(self) -> tuple[str, str]:
        """The state of the channel, and its code."""
        found = rows(self.store, CHANNEL_HEALTH)
        return (found[0]["state"], found[0]["code"] or "") if found else ("", "")

    def direct(self, number: int = 1) -> str:
        """The direct chat of a person."""
        return self.platform.direct(number)

    def allow(self, chat: str, access: Access = Access.MEMBERS) -> None:
        """The owner allows a group."""
        with self.store.write() as tx:
            add_chat(tx, self.channel, chat, direct=False)
            allow_group(tx, self.channel, chat, access, by="owner")

    def person(self, number: int = 1) -> str:
        """The id of a person."""
        return self.platform.person(number)

    def pair(self, number: int, tier: Tier = Tier.MEMBER) -> None:
        """Give a person a tier."""
        with self.store.write() as tx:
            set_tier(tx, self.channel, self.person(number), tier, by="owner", name=f"P{number}")

    def say(self, text: str, number: int = 1, chat: str = "", **more: object) -> str:
        """A person writes, in their direct chat unless another is named."""
        where = chat or self.direct(number)
        return self.platform.say(where, self.person(number), text, **more)  # type: ignore[arg-type]

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

    def answer(self, text: str, **more: object) -> None:
        """Answer the message that is due."""
        with self.store.write() as tx:
            claimed = claim(tx, "worker-1")
        assert claimed is not None
        output = RunOutput(text=text, **more)  # type: ignore[arg-type]
        with self.store.write() as tx:
            complete(tx, claimed, output, ())

    def respond(self, text: str, number: int = 1, chat: str = "", **more: object) -> int:
        """A response to a person, which answers no message; returns its id."""
        where = chat or self.direct(number)
        with self.store.write() as tx:
            id_ = send_to_person(
                tx,
                Answer(message=text, **more),  # type: ignore[arg-type]
                channel=self.channel,
                sender=f"P{number}",
                sender_id=self.person(number),
                agent=AGENT,
                reply_to=str(ReplyTo(where)),
            )
        (found,) = (int(each["id"]) for each in self.responses() if each["message_id"] == id_)
        return found

    def responses(self) -> list[Row]:
        """All responses."""
        return rows(self.store, RESPONSES)

    def response(self, id_: int) -> Row:
        """One response."""
        return next(each for each in self.responses() if each["id"] == id_)

    def ends(self, id_: int, status: str) -> Row:
        """Wait until a response is in this state."""

        def has_ended() -> bool:
            now = self.response(id_)
            dead = now["status"] == "dead" and status != "dead"
            assert not dead, f"response {id_} is dead, and should be {status}: {now}"
            return str(now["status"]) == status

        eventually(has_ended, f"response {id_} is {status}")
        return self.response(id_)

    def seen(self, *texts: str, chat: str = "") -> None:
        """Wait until exactly these texts of the bot are in a chat, in this order."""
        where = chat or self.direct()
        eventually(lambda: len(self.posts(where)) >= len(texts), f"{texts} in {where}")
        assert self.posts(where) == list(texts)

    def posts(self, chat: str = "") -> list[str]:
        """The texts of the bot in a chat."""
        return [each.strip() for each in self.platform.posts(chat or self.direct())]


def receipts(response: Row) -> list[dict[str, object]]:
    """The receipts of a response."""
    found = json.loads(response["part_receipts"] or "[]")
    assert isinstance(found, list)
    return found


@contextmanager
def account(
    stores: Stores, settings: Settings, kind: Kind, clock: Clock | None = None, **changes: str
) -> Iterator[Account]:
    """An account with an agent and six paired people; its client is started by the test."""
    with kind.make() as platform:
        given = {**platform.settings(), **changes}
        named = {f"{kind.channel}.{name}": value for name, value in given.items()}
        settings = replace(
            settings,
            accounts=AccountValues(named),
            default_agent=AGENT,
            delivery_lease_seconds=3,
            retry_base_seconds=1,
            retry_max_seconds=2,
        )
        with stores.opened(settings, clock) as store:
            hire(store, AGENT)
            made = Account(store, kind, platform)
            for number in range(1, MEMBERS + 1):
                made.pair(number)
            try:
                yield made
            finally:
                made.stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every channel on SQLite; on PostgreSQL one channel for each test, or all with ALL_STORES.

    A module with ONE_CHANNEL is about the base client: each of its tests gets one channel, the
    one that it names there or any.
    """
    if "channel" not in metafunc.fixturenames:  # it makes its own
        return
    names = list(KINDS)
    one = names[crc32(metafunc.function.__name__.encode()) % len(names)]
    everything = bool(os.environ.get(ALL_STORES))
    both = names if everything else [one]
    chosen = getattr(metafunc.module, "ONE_CHANNEL", None)
    if chosen is not None and not everything:
        names, both = [chosen.get(metafunc.function.__name__, one)], []
    pairs = [
        *(pytest.param(KINDS[name], "sqlite", id=f"{name}-sqlite") for name in names),
        *(
            pytest.param(KINDS[name], "postgresql", id=f"{name}-pg", marks=pytest.mark.postgres)
            for name in both
        ),
    ]
    metafunc.parametrize(("channel", "kind"), pairs, indirect=True)


@pytest.fixture
def channel(request: pytest.FixtureRequest) -> Kind:
    """The channel under test."""
    found = request.param
    assert isinstance(found, Kind)
    return found


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    """The database under test; SQLite for a test that makes its own account."""
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture
def stopped(
    stores: Stores, settings: Settings, channel: Kind, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Account]:
    """An account whose client the test starts."""
    for module, name, value in waits(channel.channel):
        monkeypatch.setattr(module, name, value)
    with account(stores, settings, channel) as made:
        yield made


@pytest.fixture
def served(stopped: Account) -> Account:
    """An account whose client is connected."""
    stopped.start()
    stopped.up()
    return stopped
