"""An account on Telegram, served by the client in this process, against the fake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bullpen.core.message import Answer
from tests.channels.fakes.telegram import TOKEN, FakeTelegram
from tests.channels.served import AGENT, Served, account_settings
from tests.channels.telegram.double import CHAT, PERSON
from tests.conformance.verbs import hire
from tests.stores import Stores


class ServedTelegram(Served):
    """The account of one person."""

    def respond(self, text: str) -> int:
        """A response that answers no message; returns its id."""
        return self.send(Answer(message=text), str(PERSON), CHAT)


@contextmanager
def serving(stores: Stores, fake: FakeTelegram, **changes: str) -> Iterator[ServedTelegram]:
    """An account with an agent and a paired person, whose client is connected."""
    given = {"bot_token": TOKEN, "api_url": fake.url, **changes}
    settings = account_settings(stores.settings("sqlite"), "telegram", given)
    with stores.opened(settings) as store:
        hire(store, AGENT)
        served = ServedTelegram(store, "telegram")
        served.add_person(str(PERSON))
        try:
            served.start()
            served.up()
            yield served
        finally:
            served.stop()
