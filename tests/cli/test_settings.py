"""What is bad in the environment stops a command; what is bad in the file costs only itself.

Neither is ever a traceback.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Bullpen

URLS = {
    "no URL at all": "nonsense",
    "a port that is no number": "postgresql://ann:hunter2@host:port/bullpen",
    "another database": "mysql://ann:hunter2@host/bullpen",
    "in memory": "sqlite://",
    "in memory too": "sqlite:///:memory:",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_PORT", "abc"),
        ("API_PORT", "-1"),
        ("API_PORT", "3777.5"),
        ("LEASE_SECONDS", "a minute"),
        ("POLL_SECONDS", "soon"),
        ("DURABILITY", "maybe"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named_with_its_default(
    bullpen: Bullpen, name: str, value: str
) -> None:
    result = bullpen("queue", "status", **{f"BULLPEN_{name}": value})
    assert result.status == 2
    assert result.out == ""
    assert name.lower() in result.err
    assert value in result.err
    assert "default" in result.err


@pytest.mark.parametrize("what", URLS)
def test_a_database_url_that_cannot_be_used_is_said_so_without_its_password(
    bullpen: Bullpen, what: str
) -> None:
    result = bullpen("queue", "status", BULLPEN_DATABASE_URL=URLS[what])
    assert result.status == 2
    assert "database_url" in result.err
    assert "hunter2" not in result.err


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"lease_seconds = ", "line 1: cannot read lease_seconds"),
        (b"max_hops = 3\n\xff\xfe", "line 2"),
        (b"lease_seconds = 'long'\n", "line 1: invalid value 'long' for lease_seconds"),
        (b"\nlease_seconds = 1.5\n", "line 2: invalid value 1.5 for lease_seconds"),
        (b"lease_seconds = true\n", "line 1: invalid value True for lease_seconds"),
        (b"[lease_seconds]\nx = 1\n", "line 1: invalid value {'x': 1} for lease_seconds"),
    ],
)
def test_what_is_bad_in_the_file_is_named_once_and_stops_nothing(
    bullpen: Bullpen, text: bytes, named: str
) -> None:
    (bullpen.home / "settings.toml").write_bytes(text)
    result = bullpen.ok("queue", "status", "--json")
    assert result.json is not None
    assert result.err.count("settings.toml") == 1
    assert f"Warning: settings.toml {named}" in result.err
    assert (bullpen.home / "settings.toml").read_bytes() == text


def test_a_name_that_no_setting_has_is_no_matter_of_every_command(bullpen: Bullpen) -> None:
    (bullpen.home / "settings.toml").write_text("leese_seconds = 5\n")
    assert bullpen.ok("queue", "status").err == ""


def test_a_database_that_is_named_wrongly_in_the_file_is_not_replaced(empty: Bullpen) -> None:
    (empty.home / "settings.toml").write_text("database_url = postgresql://u:hunter2@h/d\n")
    result = empty("db", "upgrade")
    assert result.status == 2
    assert "database_url" in result.err
    assert "hunter2" not in result.err
    assert not (empty.home / "bullpen.db").exists()


def test_a_home_that_is_a_file_is_said_so(empty: Bullpen) -> None:
    file = empty.home / "file"
    file.touch()
    result = Bullpen(file)("queue", "status")
    assert result.status == 2
    assert str(file) in result.err


def test_the_environment_wins_over_the_file(bullpen: Bullpen) -> None:
    (bullpen.home / "settings.toml").write_text("message_bytes = 5\n")
    bullpen.ok("db", "check")
    assert bullpen("send", "longer than five").status != 0
    result = bullpen("send", "longer than five", "--no-wait", BULLPEN_MESSAGE_BYTES="50")
    assert "text_too_long" not in result.err
    assert "over the limit" not in result.err


def test_a_home_that_does_not_exist_is_made_for_its_owner_alone(empty: Bullpen) -> None:
    home: Path = empty.home / "new" / "home"
    Bullpen(home).ok("db", "upgrade")
    assert home.stat().st_mode & 0o777 == 0o700
