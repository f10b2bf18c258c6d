"""One account served in this process, against a fake of its platform, on each database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

import pytest

from bullpen.channels import Platform
from bullpen.core.channels.senders import Tier
from bullpen.core.clock import Clock
from bullpen.core.message import Answer
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.channels.conformance.kinds import (
    EMAIL,
    EMAIL_FAULTS,
    EMAIL_TESTS,
    KINDS,
    Kind,
)
from tests.channels.conformance.quick import waits
from tests.channels.fakes.harness import Harness
from tests.channels.served import AGENT, Served, account_settings
from tests.conformance.verbs import Row, hire
from tests.processor.working import eventually
from tests.stores import Stores, all_stores

MEMBERS = 6
"""The people who are paired in every test."""


class Account(Served):
    """One account, its database, and its platform."""

    def __init__(self, store: Store, kind: Kind, platform: Harness) -> None:
        super().__init__(store, platform.channel)
        self.kind = kind
        self.platform = platform

    def client_platform(self) -> Platform:
        """The platform of the client."""
        assert self._process is not None
        return self._process._client._platform

    def direct(self, number: int = 1) -> str:
        """The direct chat of a person."""
        return self.platform.direct(number)

    def person(self, number: int = 1) -> str:
        """The id of a person."""
        return self.platform.person(number)

    def pair(self, number: int, tier: Tier = Tier.MEMBER) -> None:
        """Give a person a tier."""
        self.add_person(self.person(number), tier, f"P{number}")

    def say(self, text: str, number: int = 1, chat: str = "", **more: object) -> str:
        """A person writes, in their direct chat unless another is named."""
        where = chat or self.direct(number)
        return self.platform.say(where, self.person(number), text, **more)  # type: ignore[arg-type]

    def respond(self, text: str, number: int = 1, chat: str = "", **more: object) -> int:
        """A response to a person, which answers no message; returns its id."""
        answer = Answer(message=text, **more)  # type: ignore[arg-type]
        return self.send(answer, self.person(number), chat or self.direct(number), f"P{number}")

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
        with stores.opened(account_settings(settings, kind.channel, given), clock) as store:
            hire(store, AGENT)
            made = Account(store, kind, platform)
            for number in range(1, MEMBERS + 1):
                made.pair(number)
            try:
                yield made
            finally:
                made.stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every channel on SQLite; on PostgreSQL one for each test, or all with `make all-stores`.

    A module with ONE_CHANNEL is about the base client: each of its tests gets one channel, the
    one that it names there or any.
    """
    if "channel" not in metafunc.fixturenames:  # it makes its own
        return
    names = list(KINDS)
    one = names[crc32(metafunc.function.__name__.encode()) % len(names)]
    everything = all_stores()
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
    if metafunc.function.__name__ in EMAIL_TESTS:
        pairs.append(pytest.param(EMAIL, "sqlite", id="email-sqlite"))
    metafunc.parametrize(("channel", "kind"), pairs, indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Faults that are one and the same for SMTP are tried once."""
    items[:] = [each for each in items if not _is_left_out(each)]


def _is_left_out(item: pytest.Item) -> bool:
    given = getattr(item, "callspec", None)
    if given is None or given.params.get("channel") is not EMAIL:
        return False
    return given.params.get("fault", "close") not in EMAIL_FAULTS


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
