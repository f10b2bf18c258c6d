"""What every list can do: ids alone for other commands, and a view that refreshes itself."""

from __future__ import annotations

import json

import pytest

from tests.cli.command import Bullpen
from tests.cli.terminal import CTRL_C, terminal


@pytest.fixture
def teams(bullpen: Bullpen) -> Bullpen:
    """A home with two teams."""
    bullpen.ok("agent", "add", "coder", "--provider", "echo")
    bullpen.ok("team", "add", "dev", "coder")
    bullpen.ok("team", "add", "ops", "coder")
    return bullpen


def test_quiet_prints_ids_alone_one_a_line(teams: Bullpen) -> None:
    assert teams.ok("team", "list", "-q").out == "dev\nops\n"
    assert teams.ok("team", "ls", "--quiet").out == "dev\nops\n"
    assert teams.ok("key", "list", "-q").out == ""
    assert "max_hops" in teams.ok("config", "list", "-q").out.splitlines()
    ids = teams.ok("team", "list", "-q").out.split()
    teams.ok("team", "remove", *ids, "--yes")
    assert teams.ok("team", "list", "-q").out == ""


@pytest.mark.parametrize("option", ["--quiet", "--watch"])
def test_a_document_is_printed_whole_and_once(teams: Bullpen, option: str) -> None:
    refused = teams("team", "list", "--json", option)
    assert refused.status == 2
    assert f"give --json or {option}, not both" in refused.err
    assert json.loads(refused.out)["code"] == "usage"


def test_watch_needs_a_terminal(teams: Bullpen) -> None:
    refused = teams("team", "list", "--watch")
    assert (refused.status, refused.out) == (2, "")
    assert "Error: --watch needs a terminal" in refused.err
    assert "  Leave --watch out" in refused.err


def test_watch_shows_what_changes_until_ctrl_c(teams: Bullpen) -> None:
    with terminal(teams, "team", "list", "-w") as at:
        at.until("ops")
        teams.ok("team", "add", "web", "coder")
        assert "dev" in at.until("web")
        at.type(CTRL_C)
        assert at.end() == 0
        assert "Aborted" not in at.shown


def test_watch_shows_no_more_lines_than_the_terminal_has(teams: Bullpen) -> None:
    with terminal(teams, "config", "list", "--watch") as at:
        at.until("NAME")
        at.until("NAME")
        first = at.raw.split("\x1b[J")[0]
        assert first.startswith("\x1b[H")
        assert first.count("\n") == 23
        at.type(CTRL_C)
        assert at.end() == 0
