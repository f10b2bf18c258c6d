"""bullpen channel: which channels are set up, their state, pauses and tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bullpen.core.background import register_worker, unregister_worker
from bullpen.core.channels.health import Activity, ChannelState, report_activity, report_state
from bullpen.core.channels.pairing import request_pairing
from bullpen.core.channels.senders import Tier, set_tier
from bullpen.core.inspect.responses import list_deliverable
from bullpen.core.outbox.delivery import ack, mark_undeliverable
from bullpen.core.outbox.leases import lease_responses
from tests.cli.command import Bullpen
from tests.cli.open_store import direct
from tests.cli.schemas import channels
from tests.processor.working import eventually

SLACK = {"BULLPEN_SLACK_BOT_TOKEN": "xoxb-1", "BULLPEN_SLACK_APP_TOKEN": "xapp-1"}


@contextmanager
def served(bullpen: Bullpen, channel: str = "slack") -> Iterator[None]:
    """A process of this channel that is alive and connected."""
    with direct(bullpen) as store:
        with store.write() as tx:
            worker = register_worker(tx, channel, None)
            report_state(tx, channel, ChannelState.UP, worker=worker)
            report_activity(tx, channel, Activity(last_message_at=tx.now, connections=2))
        yield
        with store.write() as tx:
            unregister_worker(tx, worker)


def test_a_channel_is_listed_with_its_state_once_something_is_set(on_both: Bullpen) -> None:
    empty = on_both.ok("channel", "list")
    assert empty.out == "No channel is set up. Next: bullpen channel setup slack\n"
    every = on_both.ok("channel", "list", "--all", "--json").json
    names = ["discord", "slack", "sms", "telegram", "whatsapp"]
    assert [each["channel"] for each in every] == names
    half = on_both.ok("channel", "list", BULLPEN_SLACK_BOT_TOKEN="xoxb-1")
    assert "slack.app_token is not set" in half.out
    (stopped,) = on_both.ok("channel", "list", "--json", **SLACK).json
    assert (stopped["state"], stopped["missing"]) == ("stopped", [])
    with served(on_both):
        (up,) = on_both.ok("channel", "list", "--json", **SLACK).json
        assert (up["state"], up["connections"]) == ("up", 2)
        assert "xoxb" not in on_both.ok("channel", "status", "slack", **SLACK).out
    # Its process ended without a word.
    assert on_both("channel", "status", "slack", **SLACK).status == 3
    assert on_both.ok("channel", "list", "--json", **SLACK).json[0]["state"] == "stopped"


def test_a_channel_that_is_down_says_why_and_what_to_do(bullpen: Bullpen) -> None:
    with served(bullpen):
        with direct(bullpen) as store, store.write() as tx:
            hint = "Create a new token, then: bullpen channel setup slack"
            report_state(
                tx, "slack", ChannelState.DOWN, code="invalid_auth", reason="revoked", hint=hint
            )
        shown = bullpen("channel", "status", "slack", **SLACK)
    assert shown.status == 3
    for each in ("down", "invalid_auth", "revoked", hint):
        assert each in shown.out


def test_a_pause_is_kept_until_it_is_ended(on_both: Bullpen) -> None:
    with served(on_both):
        assert on_both.ok("channel", "pause", "slack", "--json", **SLACK).json["state"] == "paused"
        assert "already paused" in on_both.ok("channel", "pause", "slack", **SLACK).out
        assert on_both("channel", "status", "slack", **SLACK).status == 3
        on_both.ok("channel", "resume", "slack", **SLACK)
        assert "not paused" in on_both.ok("channel", "resume", "slack", **SLACK).out
        assert on_both.ok("channel", "status", "slack", "--json", **SLACK).json["state"] == "up"


def test_a_channel_that_does_not_exist_is_refused_with_a_suggestion(bullpen: Bullpen) -> None:
    for verb in ("status", "pause", "resume", "test"):
        for name in ("slak", "web"):
            refused = bullpen("channel", verb, name)
            assert (refused.status, refused.out) == (1, ""), verb
        assert "Did you mean 'slack'?" in bullpen("channel", verb, "slak").err
    assert bullpen("channel", "manifest", "telegram").status == 2


def test_a_test_reaches_the_owner_and_says_whether_it_was_delivered(bullpen: Bullpen) -> None:
    unset = bullpen("channel", "test", "slack")
    assert "slack.bot_token is not set" in unset.err
    nobody = bullpen("channel", "test", "slack", **SLACK)
    assert "no owner is known on slack" in nobody.err
    with direct(bullpen) as store:
        with store.write() as tx:
            set_tier(tx, "slack", "U1", Tier.OWNER, "owner", "Ann")
        delivered: list[str] = []

        def deliver(*, well: bool) -> None:
            def waits() -> bool:
                with store.read() as tx:
                    return bool(list_deliverable(tx, "slack", 0, 10))

            eventually(waits, "the test waits")
            with store.write() as tx:
                (response,) = lease_responses(tx, "slack", "w")
                delivered.append(f"{response.sender_id}: {response.message}")
                token = str(response.claim_token)
                if well:
                    ack(tx, token)
                else:
                    mark_undeliverable(tx, token, "the chat is gone")

        client = threading.Thread(target=deliver, kwargs={"well": True})
        client.start()
        done = bullpen.ok("channel", "test", "slack", "--json", **SLACK)
        client.join()
        channels.Tested.model_validate_json(done.out)
        assert (done.json["state"], done.json["to"]) == ("acked", "U1")
        client = threading.Thread(target=deliver, kwargs={"well": False})
        client.start()
        failed = bullpen("channel", "test", "slack", **SLACK)
        client.join()
    assert failed.status == 1
    assert "the chat is gone" in failed.out
    assert delivered == ["U1: test", "U1: test"]


def test_the_manifest_of_the_app_follows_the_settings(bullpen: Bullpen) -> None:
    socket = bullpen.ok("channel", "manifest", "slack").json
    assert socket["settings"]["socket_mode_enabled"] is True
    bullpen.ok("config", "set", "slack-sage.transport", "http")
    bullpen.ok("config", "set", "slack-sage.public_url", "https://sage.example.org")
    http = bullpen.ok("channel", "manifest", "slack-sage", "--app", "Sage", "--json").json
    assert http["display_information"]["name"] == "Sage"
    assert "https://sage.example.org" in str(http["settings"]["event_subscriptions"])


def test_status_has_a_line_for_each_channel_and_counts_requests(bullpen: Bullpen) -> None:
    with direct(bullpen) as store, store.write() as tx:
        request_pairing(tx, "slack", "U1", "Ann")
    with served(bullpen):
        (slack,) = bullpen("status", "--json", **SLACK).json["channels"]
        assert (slack["channel"], slack["state"], slack["waiting"]) == ("slack", "up", 1)
        shown = bullpen("status", **SLACK).out
    assert "slack up" in " ".join(shown.split())
    assert "1 pairing request waits on slack." in shown
    assert "bullpen pairing list" in shown


def test_a_change_of_the_owners_channel_warns_if_nobody_can_be_reached_there(
    bullpen: Bullpen,
) -> None:
    wrong = bullpen.ok("config", "set", "owner_channel", "telegrm", "owner_id", "4711")
    assert "Did you mean 'telegram'?" in wrong.err
    unset = bullpen.ok("config", "set", "owner_channel", "telegram")
    assert "telegram.bot_token is not set" in unset.err
    good = bullpen.ok("config", "set", "owner_channel", "cli")
    assert "owner_channel" not in good.err
