"""What the doctor finds wrong with channels."""

from __future__ import annotations

from bullpen.core.background import register_worker
from bullpen.core.channels.health import ChannelState, pause_channel, report_state
from bullpen.core.channels.pairing import request_pairing
from bullpen.ops.doctor import channels
from bullpen.ops.doctor.check import CheckState, Finding
from bullpen.ops.doctor.examine import run_check
from tests.cli.command import Bullpen
from tests.doctor.examined import fine, found, installation_of, seen, store_of

SLACK = {"BULLPEN_SLACK_BOT_TOKEN": "xoxb-1", "BULLPEN_SLACK_APP_TOKEN": "xapp-1"}


def test_a_channel_that_is_down_is_found_with_the_hint_of_its_platform(on_both: Bullpen) -> None:
    fine(on_both, "channel.down", **SLACK)
    with store_of(on_both) as store, store.write() as tx:
        register_worker(tx, "slack")
        report_state(
            tx,
            "slack",
            ChannelState.DOWN,
            code="missing_scope",
            reason="the scope files:read is missing",
            hint="Add it and install the app again.",
        )
    entry = seen(on_both, "channel.down", **SLACK)
    assert (entry["state"], entry["severity"]) == ("found", "critical")
    assert entry["text"] == "slack is down: the scope files:read is missing"
    assert entry["remedy"] == "Add it and install the app again."
    with store_of(on_both) as store, store.write() as tx:
        report_state(tx, "slack", ChannelState.UP)
        report_state(tx, "slack", ChannelState.DEGRADED, code="silent", reason="no events")
    assert "no events" in found(on_both, "channel.down", "warning", **SLACK)


def test_a_channel_that_is_set_up_and_has_no_client_running(bullpen: Bullpen) -> None:
    assert seen(bullpen, "channel.not_running", **SLACK)["state"] == "skipped"
    accounts = {"bot_token": "xoxb-1", "app_token": "xapp-1"}
    text = "".join(f'{name} = "{value}"\n' for name, value in accounts.items())
    (bullpen.home / "settings.toml").write_text(f"[slack]\n{text}")
    finding = look_while_running(bullpen)
    assert (finding.state, finding.remedy) == (CheckState.FOUND, "bullpen up")
    assert finding.text == "no client runs for slack"
    with store_of(bullpen) as store, store.write() as tx:
        register_worker(tx, "slack")
        report_state(tx, "slack", ChannelState.UP)
    assert look_while_running(bullpen).state is CheckState.OK


def look_while_running(bullpen: Bullpen) -> Finding:
    """What the check says while a supervisor without channels runs."""
    with installation_of(bullpen) as installation:
        installation.__dict__["services"] = ()
        return run_check(installation, channels.not_running)


def test_a_required_setting_that_is_empty(bullpen: Bullpen) -> None:
    fine(bullpen, "channel.incomplete", **SLACK)
    blank = {"BULLPEN_SLACK_BOT_TOKEN": "xoxb-1", "BULLPEN_SLACK_APP_TOKEN": "  "}
    text = found(bullpen, "channel.incomplete", "warning", **blank)
    assert text == "slack is not started: slack.app_token is not set"


def test_pauses_and_requests_are_notices(on_both: Bullpen) -> None:
    for each in ("channel.paused", "channel.requests"):
        fine(on_both, each)
    with store_of(on_both) as store, store.write() as tx:
        pause_channel(tx, "slack")
        request_pairing(tx, "slack", "U1", "Ann")
    assert "slack" in found(on_both, "channel.paused", "info", **SLACK)
    assert "1 pairing request" in found(on_both, "channel.requests", "info", **SLACK)


def test_an_owner_who_cannot_be_reached(bullpen: Bullpen) -> None:
    fine(bullpen, "channel.owner")
    for channel, reason in (
        ("telegrm", "Did you mean 'telegram'?"),
        ("slack", "slack.bot_token is not set"),
    ):
        text = found(bullpen, "channel.owner", "warning", BULLPEN_OWNER_CHANNEL=channel)
        assert reason in text
        checked = bullpen("config", "check", BULLPEN_OWNER_CHANNEL=channel)
        assert checked.status == 0
        assert reason in checked.out
    slack = {**SLACK, "BULLPEN_OWNER_CHANNEL": "slack"}
    assert "owner_id is not set" in found(bullpen, "channel.owner", "warning", **slack)
    fine(bullpen, "channel.owner", **slack, BULLPEN_OWNER_ID="U1")


def test_a_public_url_that_is_not_encrypted(bullpen: Bullpen) -> None:
    url = "BULLPEN_SLACK_PUBLIC_URL"
    fine(bullpen, "channel.unsafe_url", **SLACK, **{url: "https://bullpen.example.org"})
    text = found(bullpen, "channel.unsafe_url", "warning", **{url: "http://bullpen.example.org"})
    assert "slack.public_url" in text


def test_two_accounts_of_one_bot(bullpen: Bullpen) -> None:
    other = {each.replace("SLACK", "SLACK_SAGE"): value for each, value in SLACK.items()}
    text = found(bullpen, "channel.same_bot", "critical", **SLACK, **other)
    assert text == "slack and slack-sage have the same bot_token"
    assert "xoxb" not in text
    other["BULLPEN_SLACK_SAGE_BOT_TOKEN"] = "xoxb-2"
    fine(bullpen, "channel.same_bot", **SLACK, **other)
