"""The settings of channels' accounts: tables of settings.toml, variables, and their checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from bullpen.core.errors import BadSetting, SettingFixed
from bullpen.core.settings import Settings
from bullpen.core.settings.file import SettingsFile, SettingSource, Value
from bullpen.core.settings.parse import load_lenient
from bullpen.core.text import MASK

TABLES = """
max_hops = 3
[slack]
# the bot of the office
bot_token = "xoxb-office"
transport = "http"
port = 4001

[slack-sage]
bot_token = "xoxb-sage"
default_agent = "sage"
"""


def load(home: Path, text: str = TABLES, **environ: str) -> Settings:
    """The settings of a file and an environment."""
    (home / "settings.toml").write_text(text, encoding="utf-8")
    return load_lenient({"BULLPEN_HOME": str(home), **environ})[0]


def problems(home: Path, text: str) -> list[str]:
    """What is wrong in a file, as it is printed."""
    (home / "settings.toml").write_text(text, encoding="utf-8")
    return [str(each) for each in load_lenient({"BULLPEN_HOME": str(home)})[1]]


def change(home: Path, wanted: dict[str, Value | None], *, here: bool = True) -> str:
    """One change; returns the text of the file."""
    file = SettingsFile(home, {}, here=here)
    with file.locked():
        file.write(file.check(wanted))
    return file.path.read_text(encoding="utf-8") if file.path.exists() else ""


def test_each_account_has_its_own_settings_and_the_defaults_of_its_platform(tmp_path: Path) -> None:
    settings = load(tmp_path)
    office, sage = settings.account("slack"), settings.account("slack-sage")
    assert (office["bot_token"], sage["bot_token"]) == ("xoxb-office", "xoxb-sage")
    assert (office["transport"], sage["transport"]) == ("http", "socket")
    assert (office["port"], sage["port"]) == ("4001", "3781")
    assert (office["default_agent"], sage["default_agent"]) == ("", "sage")
    assert settings.max_hops == 3
    assert settings.accounts.names() == ["slack", "slack-sage"]
    assert settings.account("nonesuch") == {}
    assert settings.account("web") == {}


def test_a_variable_of_an_account_takes_precedence_over_its_table(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        BULLPEN_SLACK_BOT_TOKEN="xoxb-1",
        BULLPEN_SLACK_SAGE_BOT_TOKEN="xoxb-2",
        BULLPEN_TELEGRAM_NIGHT_SHIFT_BOT_TOKEN="4711:x",
        BULLPEN_STOP_SECONDS="30",
        BULLPEN_SLACK_SAGE_COLOUR="red",
    )
    assert settings.account("slack")["bot_token"] == "xoxb-1"
    assert settings.account("slack")["port"] == "4001"
    assert settings.account("slack-sage")["bot_token"] == "xoxb-2"
    assert settings.account("telegram-night-shift")["bot_token"] == "4711:x"
    assert settings.accounts.names() == ["slack", "slack-sage", "telegram-night-shift"]
    with pytest.raises(BadSetting, match=r"invalid value 'x' for slack\.port: must be a whole"):
        load(tmp_path, BULLPEN_SLACK_PORT="x")


def test_secrets_of_accounts_are_scrubbed_and_not_in_a_repr(tmp_path: Path) -> None:
    settings = load(tmp_path, BULLPEN_DISCORD_BOT_TOKEN="a.b.c")
    assert {*settings.secrets()} == {"xoxb-office", "xoxb-sage", "a.b.c"}
    assert not any(each in repr(settings) for each in settings.secrets())
    views = {each.name: each for each in SettingsFile(tmp_path, {}).list_settings()}
    token = views["slack.bot_token"]
    assert (token.value, token.default, token.secret) == (MASK, "", True)
    assert views["slack.app_token"].value == ""
    assert (views["slack.port"].value, views["slack.port"].source) == ("4001", SettingSource.FILE)
    assert views["slack-sage.port"].source is SettingSource.DEFAULT
    assert not any(each.startswith("telegram.") for each in views)


def test_an_invalid_setting_of_an_account_affects_no_other(tmp_path: Path) -> None:
    text = TABLES.replace("4001", "700000").replace("default_agent", "defualt_agent")
    assert problems(tmp_path, text) == [
        "settings.toml line 7: invalid value 700000 for slack.port: "
        "must be at least 1 and at most 65535",
        "settings.toml line 11: setting 'slack-sage.defualt_agent' does not exist. "
        "Did you mean 'slack-sage.default_agent'?",
    ]
    office = load(tmp_path, text).account("slack")
    assert (office["port"], office["bot_token"]) == ("3781", "xoxb-office")
    assert problems(tmp_path, "[slack]\nmax_hops = 4\n") == [
        "settings.toml line 2: max_hops is ignored in the table [slack]"
    ]
    assert problems(tmp_path, '[slack]\nbot_token = ["xoxb-1"]\n') == [
        "settings.toml line 2: invalid value for slack.bot_token: must be text"
    ]
    assert problems(tmp_path, "[slak]\nport = 4\n") == [
        "settings.toml line 1: setting 'slak' does not exist"
    ]


def test_a_file_that_is_no_toml_keeps_each_valid_line_in_its_own_table(tmp_path: Path) -> None:
    broken = TABLES.replace("port = 4001", "port = ")
    settings = load(tmp_path, broken)
    assert settings.account("slack")["bot_token"] == "xoxb-office"
    assert settings.account("slack-sage")["bot_token"] == "xoxb-sage"
    (problem,) = problems(tmp_path, broken)
    assert problem.startswith("settings.toml line 7: cannot read slack.port: ")
    # Without its header, a token must not become that of the table above.
    lost = load(tmp_path, TABLES.replace("[slack-sage]", "[slack-sage"))
    assert lost.account("slack")["bot_token"] == "xoxb-office"
    assert lost.account("slack")["default_agent"] == ""
    assert lost.accounts.names() == ["slack"]


def test_a_change_keeps_the_rest_of_the_file_and_an_empty_table_goes(tmp_path: Path) -> None:
    load(tmp_path)
    changed = change(tmp_path, {"slack.port": "4002", "telegram.bot_token": "1:x", "max_hops": 4})
    assert "# the bot of the office" in changed
    settings = load(tmp_path, changed)
    assert settings.account("slack")["port"] == "4002"
    assert settings.account("telegram")["bot_token"] == "1:x"
    assert settings.account("slack-sage")["bot_token"] == "xoxb-sage"
    assert settings.max_hops == 4
    changed = change(tmp_path, {"telegram.bot_token": None})
    assert "telegram" not in changed
    assert change(tmp_path, {"telegram.bot_token": None}) == changed
    assert change(tmp_path, {"slack.bot_token": MASK}) == changed
    for name, value, reason in (
        ("slack.transport", "smoke", "must be socket or http"),
        ("slack.public_url", "bullpen", "must be a URL"),
        ("slack.nonesuch", "1", "does not exist"),
        ("web.port", "1", "does not exist"),
    ):
        with pytest.raises(BadSetting, match=reason):
            change(tmp_path, {name: value})
    with pytest.raises(SettingFixed, match="another server would get the credentials"):
        change(tmp_path, {"slack.api_url": "http://127.0.0.1:1/"}, here=False)
