"""States of an account: paused, on hold, down, silent; and who is told."""

from __future__ import annotations

import time

import pytest

from bullpen.channels import client, watchdog
from bullpen.core.channels.chats import Access
from bullpen.core.channels.health import pause_channel, resume_channel
from bullpen.core.models import CHANNEL_HEALTH
from bullpen.core.outbox.hold import begin_hold
from bullpen.ops.backup.release_hold import release_hold
from tests.channels.conformance.conftest import Account
from tests.conformance.verbs import rows
from tests.processor.working import eventually

SOON = 5.0
"""Shorter than each interval at which the client looks by itself."""


def pause(account: Account) -> None:
    with account.store.write() as tx:
        pause_channel(tx, account.channel)


def resume(account: Account) -> None:
    with account.store.write() as tx:
        resume_channel(tx, account.channel)


def notices(account: Account) -> list[str]:
    """The notices to the owner."""
    return [each["message"] for each in account.responses() if each["channel"] == "cli"]


def test_a_pause_and_its_end_take_effect_at_once(served: Account) -> None:
    pause(served)
    eventually(lambda: served.state()[0] == "paused", "it is paused", SOON)
    resume(served)
    eventually(lambda: served.state()[0] == "up", "it is up", SOON)


def test_a_restored_home_neither_receives_nor_sends_before_its_release(stopped: Account) -> None:
    stopped.say("before", 1)
    with stopped.store.write() as tx:
        begin_hold(tx, "restored from backup.tar")
    id_ = stopped.respond("later")
    stopped.start()
    eventually(lambda: stopped.state() == ("paused", "restored"), f"on hold: {stopped.state()}")
    (health,) = rows(stopped.store, CHANNEL_HEALTH)
    assert "restored from backup.tar" in health["reason"]
    assert "bullpen db release" in health["hint"]
    stopped.say("meanwhile")
    resume(stopped)  # a person who resumes the channel does not release the home
    time.sleep(1)
    assert stopped.state()[0] == "paused"
    assert not stopped.messages()
    assert not stopped.posts()
    release_hold(stopped.store)
    eventually(lambda: stopped.state()[0] == "up", "it is up", SOON)
    stopped.ends(id_, "acked")


def test_an_account_that_is_down_is_tried_at_once_when_it_is_resumed(
    served: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "DOWN_SECONDS", (3_600.0,))
    served.platform.fail_next("revoked")
    id_ = served.respond("hello")
    eventually(lambda: served.state()[0] == "down", f"it is down: {served.state()}")
    served.platform.heal()
    resume(served)
    eventually(lambda: served.state()[0] == "up", f"it is up: {served.state()}", 2 * SOON)
    served.ends(id_, "acked")
    eventually(lambda: len(notices(served)) == 2, f"two notices: {notices(served)}")
    down, up = notices(served)
    assert "is down" in down
    assert "is up again" in up


def test_an_account_that_is_down_is_tried_after_a_minute(
    served: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.DOWN_SECONDS == (60.0, 300.0, 1800.0)
    monkeypatch.setattr(client, "DOWN_SECONDS", (1.0, 2.0, 3.0))
    served.platform.fail_next("revoked")
    served.respond("hello")
    eventually(lambda: served.state()[0] == "down", f"it is down: {served.state()}")
    served.platform.heal()
    eventually(lambda: served.state()[0] == "up", f"it is up: {served.state()}")


def test_the_owner_of_the_channel_that_is_down_reads_it_in_a_terminal(stopped: Account) -> None:
    settings = stopped.store.settings
    object.__setattr__(settings, "owner_channel", stopped.channel)
    object.__setattr__(settings, "owner_id", stopped.person(1))
    stopped.start()
    stopped.up()
    stopped.platform.fail_next("revoked")
    stopped.respond("hello", 2)
    eventually(lambda: is_told(stopped), f"the notice: {stopped.responses()}")


def is_told(account: Account) -> bool:
    return any("is down" in each for each in notices(account))


def test_the_first_mention_in_a_group_that_was_allowed_while_bullpen_was_stopped_is_taken_in(
    served: Account,
) -> None:
    if not served.kind.groups:
        pytest.skip("the platform has no groups")
    served.say("before")
    served.stored("before")
    served.stop()
    group = served.platform.chat(False)
    served.allow(group, Access.MEMBERS)
    time.sleep(1.1)  # platforms count in seconds
    served.say("the first mention", chat=group)
    served.start()
    served.stored("before", "the first mention")


def test_openclaw_17847_a_silent_connection_is_noticed_and_replaced(
    stopped: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also its 128809, and hermes-agent 78881."""
    if stopped.channel != "discord":
        pytest.skip("its fake loses no single event")
    monkeypatch.setattr(watchdog, "SILENT_MS", 1000)
    monkeypatch.setattr(watchdog, "CHECK_SECONDS", 0.2)
    monkeypatch.setattr(watchdog, "CONFIRM_SECONDS", 0.2)
    stopped.start()
    stopped.up()
    stopped.say("before")
    stopped.stored("before")
    sessions = connections(stopped)
    stopped.platform.fake.say(stopped.direct(), stopped.person(), "lost", silent=True)  # type: ignore[attr-defined]
    stopped.stored("before", "lost")
    eventually(lambda: connections(stopped) > sessions, "it connects again")
    stopped.up()


def connections(account: Account) -> int:
    """How often the client connected."""
    found: list[float] = account.platform.fake.identified  # type: ignore[attr-defined]
    return len(found)
