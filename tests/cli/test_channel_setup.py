"""bullpen channel setup: settings are checked live before they are saved; secrets stay secret."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bullpen.core.channels.chats import ChatSeen, touch_chat
from bullpen.core.registry import CHANNELS
from tests.cli.command import PROGRAM, Bullpen, Result
from tests.cli.open_store import direct
from tests.cli.schemas.channels import SetUp
from tests.cli.terminal import terminal
from tests.registry.packages import install

LIMIT_SECONDS = 120.0
GOOD, WRONG = "pigeon-token-good", "pigeon-token-wrong"
CODE = """
from bullpen.channels.failures import ChannelDown
from bullpen.channels.platform import Finding, Identity, Platform
from bullpen.core.registry import ChannelInfo, ChannelSetting

SETTINGS = (
    ChannelSetting("token", "Token of the loft.", required=True, secret=True),
    ChannelSetting("way", "How letters arrive: `air` or `foot`.", default="air",
                   choices=("air", "foot")),
    ChannelSetting("shoes", "Size of the shoes.", required=True, when=("way", "foot"),
                   limits=(30, 50)),
)
PIGEON = ChannelInfo(name="pigeon", settings=SETTINGS, factory="loft:Pigeon")


class Pigeon(Platform):
    async def start(self):
        if self.context.setting("token") != "pigeon-token-good":
            raise ChannelDown("invalid_auth", "the loft refuses the token", "Ask for a new token.")
        return Identity(id="B1", name="Bluebell")

    async def check(self):
        return [Finding(ok=True, code="way", text=self.context.setting("way"))]

    async def probe(self, chat):
        return [Finding(ok=True, code="letters", text=f"a letter reached {chat}")]

    async def receive(self, intake): ...
    def parse(self, payload): ...
    def fits(self, text): return True
    async def send(self, sending, note): ...
"""


@pytest.fixture
def loft(bullpen: Bullpen, tmp_path: Path) -> Bullpen:
    """A home in which the package of a channel is installed."""
    install(tmp_path / "packages", "loft", CHANNELS.group, {"pigeon": "loft:PIGEON"}, CODE)
    path = os.pathsep.join([str(tmp_path / "packages"), *filter(None, sys.path)])
    return Bullpen(bullpen.home, {"PYTHONPATH": path})


def set_up(bullpen: Bullpen, *args: str, stdin: str = "", **more: str) -> Result:
    """Run the command in a process of its own, which finds the package."""
    done = subprocess.run(
        [*PROGRAM, "channel", "setup", *args, "--no-input"],
        env=bullpen.environment(**more),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Result(done.returncode, done.stdout, done.stderr)


def saved(bullpen: Bullpen) -> str:
    """The text of settings.toml; empty if it is missing."""
    file = bullpen.home / "settings.toml"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def test_settings_that_the_platform_accepts_are_saved(loft: Bullpen) -> None:
    done = set_up(loft, "pigeon-home", "--set", "token", "-", "--json", stdin=f"{GOOD}\n")
    assert done.status == 0, done
    document = SetUp.model_validate_json(done.out)
    assert document.changed == ["pigeon-home.token"]
    assert [each.text for each in document.findings] == ["connected as Bluebell", "air"]
    assert f'[pigeon-home]\ntoken = "{GOOD}"' in saved(loft)
    assert GOOD not in done.out + done.err
    assert (loft.home / "settings.toml").stat().st_mode & 0o077 == 0


def test_settings_that_the_platform_refuses_are_not_saved_and_it_says_why(loft: Bullpen) -> None:
    done = set_up(loft, "pigeon", "--set", "token", "-", stdin=f"{WRONG}\n")
    assert done.status == 1
    assert "the loft refuses the token" in done.err
    assert "Ask for a new token." in done.err
    assert "nothing was saved" in done.err
    assert saved(loft) == ""
    assert WRONG not in done.out + done.err
    anyway = set_up(loft, "pigeon", "--set", "token", "-", "--no-check", stdin=f"{WRONG}\n")
    assert anyway.status == 0, anyway
    assert WRONG in saved(loft)


def test_a_setting_that_is_required_by_another_must_be_given(loft: Bullpen) -> None:
    half = set_up(loft, "pigeon", "--set", "token", "-", "--set", "way", "foot", stdin=f"{GOOD}\n")
    assert (half.status, half.out) == (2, "")
    assert "pigeon.shoes is not set" in half.err
    for more, reason in (
        (("way", "foot", "shoes", "9"), "must be at least 30"),
        (("way", "sea"), "must be air or foot"),
    ):
        pairs = zip(more[::2], more[1::2], strict=True)
        words = [word for pair in pairs for word in ("--set", *pair)]
        refused = set_up(loft, "pigeon", "--set", "token", "-", *words, stdin=f"{GOOD}\n")
        assert refused.status == 2
        assert reason in refused.err
    assert saved(loft) == ""


def test_a_secret_is_refused_as_an_argument(loft: Bullpen) -> None:
    refused = set_up(loft, "pigeon", "--set", "token", GOOD)
    assert refused.status == 2
    assert "is a secret and cannot be given as an argument" in refused.err
    assert "Use --set token - to give it on standard input" in refused.err
    assert GOOD not in refused.err


def test_a_wrong_name_is_answered_with_the_names_of_this_account(bullpen: Bullpen) -> None:
    refused = bullpen("channel", "setup", "slack-sage", "--set", "bot_tokn", "-")
    assert refused.status == 2
    assert "setting 'bot_tokn' does not exist. Did you mean 'bot_token'?" in refused.err
    assert "Settings of slack-sage: bot_token, transport," in refused.err
    for name, meant in (("slack_sage", "slack-sage"), ("Slack", "slack"), ("slak", "slack")):
        assert f"Did you mean '{meant}'?" in bullpen("channel", "setup", name).err
    assert "channel 'web' has no client" in bullpen("channel", "setup", "web").err
    wrong = bullpen("channel", "setup", "sms", "--owner", "Ann")
    assert (wrong.status, "invalid id 'Ann' of a person on sms" in wrong.err) == (2, True)


def test_an_account_with_the_bot_of_another_one_is_refused(bullpen: Bullpen) -> None:
    token = ("--set", "bot_token", "-", "--json")
    bullpen.ok("channel", "setup", "discord", *token, "--no-check", stdin="discord-token\n")
    refused = bullpen("channel", "setup", "discord-two", *token, stdin="discord-token\n")
    assert refused.status == 1
    assert [each["text"] for each in refused.json["findings"]] == ["discord has the same bot_token"]
    assert "discord-two" not in saved(bullpen)


def test_a_command_that_changes_a_setting_is_not_a_hint_within_setup(bullpen: Bullpen) -> None:
    refused = bullpen("channel", "setup", "telegram", "--set", "bot_token", "-", stdin="xoxb-1\n")
    assert refused.status == 1
    assert "123456:ABC…, and set `bot_token`." in refused.err
    assert "config set" not in refused.err


def test_the_owner_writes_to_the_number_of_a_phone_channel(bullpen: Bullpen) -> None:
    values = {"account_sid": "AC1", "number": "+15550000001"}
    words = [word for name, value in values.items() for word in ("--set", name, value)]
    secret = ("--set", "auth_token", "-", "--no-check")
    done = bullpen.ok("channel", "setup", "sms", *words, *secret, stdin="secret\n")
    assert "Write to +15550000001, then: bullpen pairing approve CODE --tier owner" in done.err
    assert "Write to +15550000001" in bullpen("channel", "test", "sms").err


def test_the_owner_is_set_and_a_probe_in_their_chat_is_kept(loft: Bullpen) -> None:
    with direct(loft) as store, store.write() as tx:
        touch_chat(tx, "pigeon", ChatSeen(chat="nest-7", direct=True, person="4711"))
    nobody = set_up(loft, "pigeon", "--set", "token", "-", "--probe", stdin=f"{GOOD}\n")
    assert nobody.status == 1
    assert "no chat of the owner is known on pigeon" in nobody.err
    done = set_up(loft, "pigeon", "--owner", "4711", "--probe", "--json")
    document = SetUp.model_validate_json(done.out)
    assert document.changed == ["owner_channel", "owner_id"]
    assert "a letter reached nest-7" in [each.text for each in document.findings]
    status = subprocess.run(
        [*PROGRAM, "channel", "status", "pigeon"],
        env=loft.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert "a letter reached nest-7" in status.stdout


def test_at_a_terminal_it_asks_until_the_answers_are_valid_and_hides_secrets(loft: Bullpen) -> None:
    with terminal(loft, "channel", "setup", "pigeon") as person:
        person.until("token: Token of the loft")
        person.type(f"{WRONG}\n")
        person.until("way: How letters arrive")
        person.type("foot\n")
        person.until("shoes: Size of the shoes")
        person.type("9\n")
        person.until("It must be at least 30 and at most 50.")
        person.type("42\n")
        person.until("the loft refuses the token")
        person.until("Enter the settings again, save them anyway, or cancel?")
        person.type("again\n")
        person.until("token: Token of the loft [********]")
        person.type(f"{GOOD}\n")
        person.until("[foot]")
        person.type("\n")
        person.until("shoes: Size of the shoes [42]")
        person.type("\n")
        person.until("connected as Bluebell")
        person.until("Your id on pigeon")
        person.press("\x03")
        person.until("Cancelled. Nothing was saved.")
        assert person.end() == 1
    assert saved(loft) == ""
    assert WRONG not in person.shown
    with terminal(loft, "channel", "setup", "pigeon") as person:
        person.until("token: Token of the loft")
        person.type(f"{GOOD}\n")
        person.until("way: How letters arrive")
        person.type("\n")
        person.until("connected as Bluebell")
        person.until("Your id on pigeon")
        person.type("4711\n")
        person.until("Saved owner_channel, owner_id, pigeon.token.")
        person.until("Next: bullpen up")
        assert person.end() == 0
    assert f'token = "{GOOD}"' in saved(loft)
    assert GOOD not in person.shown
    with terminal(loft, "channel", "setup", "pigeon") as person:
        person.until("token: Token of the loft [********]")
        person.type("\n")
        person.until("way: How letters arrive")
        person.type("\n")
        person.until("connected as Bluebell")
        person.until("The settings are unchanged.")
        assert person.end() == 0


def test_the_listener_of_a_further_account_gets_a_port_of_its_own(loft: Bullpen) -> None:
    options = ("--set", "transport", "http", "--set", "public_url", "https://bots.example.org")
    secrets = ("--set", "bot_token", "-", "--set", "signing_secret", "-", "--no-check")
    loft.ok("config", "set", "slack-fourth.default_agent", "coder")  # it is not set up
    for name in ("slack", "slack-sage", "slack-third"):
        done = set_up(loft, name, *options, *secrets, stdin=f"xoxb-{name}\nsecret-{name}\n")
        assert done.status == 0, done
    names = ("slack", "slack-sage", "slack-third")
    ports = [loft.ok("config", "get", f"{name}.port").out.strip() for name in names]
    assert ports == ["3781", "3791", "3801"]
    assert loft.ok("doctor", "--only", "channel.same_bot").status == 0
