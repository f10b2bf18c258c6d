"""A settings file that cannot be read in part, or at all: what starts, what is said, what stays."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from tests.cli.command import Bullpen, Result
from tests.processor.working import eventually

pytestmark = pytest.mark.slow

LONG = 150
PROPER = b"grace_seconds = 2\n"


def states(bullpen: Bullpen) -> dict[str, str]:
    """Each service's state."""
    found = bullpen("status", "--json").json["services"]
    return {each["name"]: each["state"] for each in found}


def ask(bullpen: Bullpen, path: str) -> tuple[int, bytes]:
    """What the API answers."""
    request = f"http://127.0.0.1:{bullpen.environ['BULLPEN_API_PORT']}{path}"
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def started_with(bullpen: Bullpen, text: bytes) -> Result:
    """`bullpen up` with this file, which it must leave as it is."""
    file = bullpen.home / "settings.toml"
    file.write_bytes(text)
    result = bullpen("up")
    assert file.read_bytes() == text
    return result


BAD = (
    (b"# mine\nmax_cost = 'abc'\n", 2, "invalid value 'abc' for max_cost"),
    (b"# mine\n\nthis is no toml\n", 3, "cannot read this line"),
    (b"lease_seconds = 0\n", 1, "must be at least 1"),
)


def test_the_api_and_the_commands_work_and_the_line_is_named(empty: Bullpen) -> None:
    for text, line, reason in BAD:
        started = started_with(empty, PROPER + text)
        assert started.status == 3
        assert f"settings.toml line {line + 1}: " in started.err
        assert reason in started.err
        assert "processor did not start" in started.err  # its limits would be the defaults
    assert ask(empty, "/readyz")[0] == 200
    assert empty.ok("agent", "list", "--json").json[0]["id"] == "assistant"
    waiting = empty.ok("send", "hello", "--no-wait").out.strip()

    (empty.home / "settings.toml").write_bytes(PROPER)
    assert empty.ok("up").err == ""
    assert empty.ok("status").status == 0
    eventually(lambda: empty.ok("queue", "status", "--json").json["pending"] == 0, "answered", LONG)
    assert "hello" in empty.ok("trace", waiting).out


def test_an_unknown_name_stops_nothing_and_is_told(empty: Bullpen) -> None:
    started = started_with(empty, b"colour = 'blue'\nmax_cots = 5\n")
    assert started.status == 0
    assert "settings.toml line 1: setting 'colour' does not exist" in started.err
    assert "Did you mean 'max_cost'?" in started.err
    assert set(states(empty).values()) == {"RUNNING"}
    assert "colour" not in empty.ok("agent", "list").err


@pytest.mark.parametrize("text", [b"database_url = 'nonsense'\n", b"database_url = sqlite\n"])
def test_where_nobody_knows_the_database_the_api_says_so_until_the_file_is_corrected(
    empty: Bullpen, text: bytes
) -> None:
    started = started_with(empty, text)
    assert started.status == 3
    assert "settings.toml" in started.err or "database_url" in started.err
    assert not (empty.home / "bullpen.db").exists()  # no other database is made in its place
    assert states(empty)["api"] == "RUNNING"
    assert ask(empty, "/healthz")[0] == 200
    status, body = ask(empty, "/api/status")
    assert status == 503
    assert b"bullpen config check" in body
    assert b"nonsense" not in body
    assert b"sqlite" not in body
    assert empty("config", "check").status == 3
    assert empty("agent", "list").status == 2

    (empty.home / "settings.toml").write_bytes(PROPER)
    assert empty.ok("up").status == 0
    eventually(lambda: ask(empty, "/readyz")[0] == 200, "the API is open", LONG)
