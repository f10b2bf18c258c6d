"""A channel from its setup to the first answer, while Bullpen runs, with the platform's SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.channels.fakes.telegram import TOKEN, FakeTelegram
from tests.cli.command import Bullpen
from tests.ports import free_port
from tests.processor.working import eventually

CHAT = "1001"
SOON = 60.0


@pytest.fixture
def telegram() -> Iterator[FakeTelegram]:
    """Telegram with a private chat."""
    with FakeTelegram() as fake:
        fake.add_chat(CHAT)
        yield fake


def test_a_channel_is_set_up_while_bullpen_runs_and_answers_after_the_pairing(
    empty: Bullpen, telegram: FakeTelegram
) -> None:
    port = {"BULLPEN_API_PORT": str(free_port())}
    empty.ok("up", **port)
    options = ("--set", "bot_token", "-", "--set", "api_url", telegram.url, "--json")
    wrong = empty("channel", "setup", "telegram", *options, stdin="1:x\n", **port)
    assert wrong.status == 1
    assert not (empty.home / "settings.toml").exists()
    done = empty.ok("channel", "setup", "telegram", *options, stdin=f"{TOKEN}\n", **port)
    assert done.json["started"] is True
    assert TOKEN not in done.out + done.err
    eventually(lambda: _state(empty) == "up", "the channel is connected", SOON)
    services = {each["name"]: each["state"] for each in _status(empty)["services"]}
    assert services["telegram"] == "RUNNING"

    telegram.say(CHAT, int(CHAT), "hello")
    eventually(lambda: bool(telegram.posts(CHAT)), "the person gets a code", SOON)
    (request,) = empty.ok("pairing", "list", "--waiting", "--json").json
    assert request["code"] in telegram.posts(CHAT)[0]
    empty.ok("pairing", "approve", request["code"], "--tier", "owner")
    telegram.say(CHAT, int(CHAT), "are you there?")
    eventually(lambda: any("are you there?" in each for each in telegram.posts(CHAT)), "it answers")
    assert empty.ok("channel", "test", "telegram", "--json").json["to"] == CHAT
    assert telegram.posts(CHAT)[-1] == "test"

    before = _pid(empty, "processor")
    telegram.say(CHAT, int(CHAT), "/restart")
    eventually(lambda: telegram.posts(CHAT)[-1] == "Restarted the processor.", "it restarts", SOON)
    assert _pid(empty, "processor") not in (0, before)

    # The client is stopped while another process uses its bot, and runs again, whatever comes out.
    probe = ("channel", "setup", "telegram", "--owner", CHAT, "--probe", "--json")
    findings = empty.ok(*probe, **port).json["findings"]
    assert all(each["ok"] for each in findings)
    assert len({each["text"] for each in findings}) == len(findings)
    refused = empty("channel", "setup", "telegram", *options, stdin="1:x\n", **port)
    assert refused.status == 1
    eventually(lambda: _state(empty) == "up", "the channel is up after the checks", SOON)
    health = _status(empty)["channels"][0]
    assert health["code"] == ""

    empty.ok("channel", "pause", "telegram")
    eventually(lambda: _state(empty) == "paused", "the channel is paused", SOON)
    assert "telegram paused" in empty("status").out
    empty.ok("channel", "resume", "telegram")
    eventually(lambda: _state(empty) == "up", "the channel is up again", SOON)
    logs = "".join(each.read_text() for each in (empty.home / "logs").glob("*.log"))
    assert TOKEN not in logs
    assert TOKEN not in json.dumps(_status(empty))


def _status(bullpen: Bullpen) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = bullpen("status", "--json").json
    return found


def _pid(bullpen: Bullpen, service: str) -> int:
    (found,) = (each for each in _status(bullpen)["services"] if each["name"] == service)
    assert isinstance(found["pid"], int)
    return found["pid"]


def _state(bullpen: Bullpen) -> object:
    (channel,) = _status(bullpen)["channels"]
    return channel["state"]
