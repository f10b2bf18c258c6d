"""The account served by the real client, on each database: what only Twilio has."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import update

from bullpen.channels import catch_up
from bullpen.core.message import Answer
from bullpen.core.models import CHATS
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from tests.channels.fakes.twilio import FakeSms, FakeTwilio, FakeWhatsApp, TwilioHarness
from tests.channels.served import AGENT, Served, account_settings
from tests.channels.twilio.accounts import ANN
from tests.conformance.verbs import Row, hire, rows
from tests.processor.working import eventually
from tests.stores import Stores

DAY = 24 * 3600


class ServedTwilio(Served):
    """One account, with Ann as a member."""

    def __init__(self, store: Store, fake: FakeTwilio) -> None:
        super().__init__(store, fake.channel)
        self.fake = fake

    def respond(self, text: str) -> int:
        """Send something to Ann; returns the id of the response."""
        return self.send(Answer(message=text), ANN)

    def states(self) -> list[str]:
        """The states of the responses to Ann."""
        return [each["status"] for each in self.responses() if each["channel"] == self.channel]

    def notices(self) -> list[str]:
        """What the owner was sent."""
        return [each["message"] for each in self.responses() if each["channel"] == "cli"]

    def chat(self) -> Row:
        """Ann's chat."""
        (found,) = rows(self.store, CHATS)
        return found


@contextmanager
def serving(stores: Stores, settings: Settings, channel: str) -> Iterator[ServedTwilio]:
    """The client of an account, running."""
    with FakeSms() if channel == "sms" else FakeWhatsApp() as fake:
        given = TwilioHarness(fake).settings()
        with stores.opened(account_settings(settings, channel, given)) as store:
            hire(store, AGENT)
            served = ServedTwilio(store, fake)
            served.add_person(ANN)
            served.start()
            try:
                served.up()
                yield served
            finally:
                fake.wait_for(fake.settled)
                served.stop()


@pytest.fixture
def sms(
    stores: Stores, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ServedTwilio]:
    monkeypatch.setattr(catch_up, "SWEEP_SECONDS", 0.5)
    with serving(stores, settings, "sms") as served:
        yield served


@pytest.fixture
def whatsapp(
    stores: Stores, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ServedTwilio]:
    monkeypatch.setattr(catch_up, "SWEEP_SECONDS", 0.5)
    with serving(stores, settings, "whatsapp") as served:
        yield served


def sweep(served: ServedTwilio) -> None:
    """Wait until the list was read twice from now on."""
    pattern = "GET */Messages.json"
    served.fake.wait_for_request(pattern, len(served.fake.requests(pattern)) + 2)


@pytest.mark.one_store
def test_a_message_whose_webhook_never_came_is_found_by_the_sweep_once(sms: ServedTwilio) -> None:
    sms.fake.say(ANN, "with a webhook")
    eventually(lambda: sms.texts() == ["with a webhook"], "the first")
    sms.fake.say(ANN, "without a webhook", push=False)
    eventually(lambda: len(sms.texts()) == 2, "the second")
    sweep(sms)
    assert sms.texts() == ["with a webhook", "without a webhook"]


@pytest.mark.one_store
def test_a_person_who_writes_stop_gets_nothing_more_and_the_owner_is_told_once(
    whatsapp: ServedTwilio,
) -> None:
    """Twilio does not hold the messages of a WhatsApp sender back."""
    whatsapp.fake.say(ANN, "hello")
    eventually(lambda: whatsapp.texts() == ["hello"], "the first")
    whatsapp.fake.say(ANN, "Stop")
    eventually(lambda: whatsapp.chat()["opted_out_at"] is not None, "it is recorded")
    sweep(whatsapp)
    whatsapp.respond("one")
    whatsapp.respond("two")
    eventually(lambda: whatsapp.states() == ["dead", "dead"], f"{whatsapp.states()}")
    asked = [each for each in whatsapp.notices() if "no more messages" in each]
    assert len(asked) == 1, whatsapp.notices()
    assert not whatsapp.fake.sent(ANN)
    assert whatsapp.texts() == ["hello"]
    whatsapp.fake.say(ANN, "START")
    eventually(lambda: whatsapp.chat()["opted_out_at"] is None, "they want messages again")
    whatsapp.respond("three")
    eventually(lambda: whatsapp.fake.posts(ANN) == ["three"], "it arrives")
    sweep(whatsapp)
    assert whatsapp.chat()["opted_out_at"] is None


def test_a_stop_of_a_stranger_costs_nothing(whatsapp: ServedTwilio) -> None:
    for _ in range(3):
        whatsapp.fake.say("+15551000009", "STOP")
    whatsapp.fake.say(ANN, "hello")
    eventually(lambda: whatsapp.texts() == ["hello"], "a message after it")
    assert not whatsapp.notices()
    assert [each["chat"] for each in rows(whatsapp.store, CHATS)] == [ANN]


def test_a_person_who_writes_again_after_stop_is_answered(whatsapp: ServedTwilio) -> None:
    whatsapp.fake.say(ANN, "hello")
    whatsapp.fake.say(ANN, "STOP")
    eventually(lambda: bool(whatsapp.notices()), "it is recorded")
    whatsapp.fake.opted_out.clear()
    whatsapp.fake.say(ANN, "what about now?")
    eventually(lambda: len(whatsapp.texts()) == 2, "the message")
    whatsapp.respond("an answer")
    eventually(lambda: whatsapp.fake.posts(ANN) == ["an answer"], "the answer")


def test_after_a_day_without_a_message_the_template_is_used(
    whatsapp: ServedTwilio,
) -> None:
    whatsapp.fake.say(ANN, "hello")
    eventually(lambda: whatsapp.texts() == ["hello"], "the message")
    until = whatsapp.chat()["window_until"]
    assert abs(until / 1000 - time.time() - DAY) < 60
    ended: Statement[None] = Statement(lambda: update(CHATS).values(window_until=1))
    with whatsapp.store.write() as tx:
        tx.write(ended, {})
    whatsapp.respond("too late")
    eventually(lambda: bool(whatsapp.fake.sent(ANN)), "the template")
    assert whatsapp.fake.sent(ANN)[0].variables == '{"1": "too late"}'


def test_an_answer_that_a_carrier_refuses_later_is_reported_to_the_owner(sms: ServedTwilio) -> None:
    sms.fake.fail_number(ANN, callback=30006)
    sms.respond("hello")
    eventually(lambda: any("30006" in each for each in sms.notices()), f"{sms.notices()}")
    assert ANN not in sms.notices()[0]


def test_an_unknown_answer_is_settled_by_its_status_callback(sms: ServedTwilio) -> None:
    sms.fake.fail("error", "POST */Messages.json", taken=True)
    sms.respond("hello")
    eventually(lambda: sms.states() == ["acked"], f"{sms.states()}")
    assert sms.fake.posts(ANN) == ["hello"]


def test_a_person_who_is_opted_out_at_twilio_is_recorded(sms: ServedTwilio) -> None:
    sms.fake.say(ANN, "hello")
    eventually(lambda: sms.texts() == ["hello"], "the message")
    sms.fake.opted_out.add(ANN)
    sms.respond("one")
    eventually(lambda: sms.states() == ["dead"], f"{sms.states()}")
    assert sms.chat()["opted_out_at"] is not None
    assert sum("no more messages" in each for each in sms.notices()) == 1
