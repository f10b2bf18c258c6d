"""Outages: of the platform, of the client, and of the connection between them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from bullpen.channels import CatchUp, Payload, Place, Platform
from bullpen.channels.incoming import queue
from tests.channels.conformance.conftest import Account
from tests.processor.working import eventually

OFFLINE = 25


def test_what_was_written_while_the_platform_was_not_reachable_is_taken_in_once(
    served: Account,
) -> None:
    served.say("before")
    served.stored("before")
    served.platform.offline()
    texts = [f"meanwhile {each}" for each in range(OFFLINE)]
    for each in texts:
        served.say(each)
    id_ = served.respond("an answer from the outage")
    served.platform.online()
    served.stored("before", *texts)
    served.ends(id_, "acked")
    served.say("after")
    served.stored("before", *texts, "after")


def test_what_was_written_while_bullpen_was_stopped_is_taken_in_once(served: Account) -> None:
    served.say("before")
    served.stored("before")
    served.stop()
    texts = [f"meanwhile {each}" for each in range(OFFLINE)]
    for each in texts:
        served.say(each)
    served.start()
    served.stored("before", *texts)
    served.say("after")
    served.stored("before", *texts, "after")


def test_responses_wait_while_bullpen_is_stopped(served: Account) -> None:
    served.stop()
    ids = [served.respond(f"number {each}") for each in range(5)]
    served.start()
    for each in ids:
        served.ends(each, "acked")
    served.seen(*(f"number {each}" for each in range(5)))


def test_a_paused_channel_neither_receives_nor_sends(served: Account) -> None:
    from bullpen.core.channels.health import pause_channel, resume_channel

    with served.store.write() as tx:
        pause_channel(tx, served.channel)
    eventually(lambda: served.state()[0] == "paused", "it is paused")
    id_ = served.respond("later")
    assert served.response(id_)["status"] == "pending"
    assert not served.posts()
    with served.store.write() as tx:
        resume_channel(tx, served.channel)
    served.ends(id_, "acked")


def test_missed_messages_come_before_those_after_the_reconnect(
    served: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    if served.channel in ("sms", "whatsapp"):
        pytest.skip("Twilio gives up on a webhook, and its list is read later")
    served.say("before")
    served.stored("before")
    platform = type(served.client_platform())
    right, asked = platform.missed, threading.Event()

    async def slow(self: Platform, place: Place, limit: int) -> list[Payload]:
        asked.set()
        await asyncio.sleep(1.0)  # as long as the live message needs
        return await right(self, place, limit)

    monkeypatch.setattr(platform, "missed", slow)
    served.platform.offline()
    texts = [f"meanwhile {each}" for each in range(OFFLINE)]
    for each in texts:
        served.say(each)
    served.platform.online()
    if platform.catch_up is CatchUp.CHATS:
        assert asked.wait(60)
    served.say("after")
    served.stored("before", *texts, "after")


def test_a_catch_up_that_fails_is_repeated_and_loses_nothing(
    served: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if people go on writing, and what they write is stored first."""
    platform = type(served.client_platform())
    if platform.catch_up is not CatchUp.CHATS:
        pytest.skip("what was missed is not read chat by chat")
    served.say("before")
    served.stored("before")
    monkeypatch.setattr(queue, "HOLD_SECONDS", 0.1)
    right, asked, broken = platform.missed, threading.Event(), threading.Event()
    broken.set()

    async def missed(self: Platform, place: Place, limit: int) -> list[Payload]:
        asked.set()
        if broken.is_set():
            raise ConnectionError("the history cannot be read")
        return await right(self, place, limit)

    monkeypatch.setattr(platform, "missed", missed)
    served.platform.offline()
    texts = [f"meanwhile {each}" for each in range(OFFLINE)]
    for each in texts:
        served.say(each)
    served.platform.online()
    assert asked.wait(60), "it is connected again"
    served.say("after")
    served.stored("before", "after")
    broken.clear()
    served.stored("before", "after", *texts)
