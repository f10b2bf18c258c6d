"""A filter names something that exists, or is refused."""

from __future__ import annotations

import pytest

from tests.cli.command import Bullpen
from tests.cli.open_store import company


@pytest.fixture
def office(bullpen: Bullpen) -> Bullpen:
    """Three agents, one of them removed, and a message."""
    office = company(bullpen)
    office.ok("send", "@coder hello", "--no-wait")
    office.ok("agent", "add", "leaver", "--provider", "echo")
    office.ok("agent", "remove", "leaver")
    return office


COMMANDS = [
    *(("queue", each) for each in ("list", "dead", "held")),
    *(("queue", each, "--yes") for each in ("retry", "drop", "cancel")),
    ("response", "list"),
    ("response", "retry", "--yes"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_filter_for_an_agent_that_does_not_exist_is_refused_with_a_suggestion(
    office: Bullpen, command: tuple[str, ...]
) -> None:
    refused = office(*command, "--agent", "codre")
    assert (refused.status, refused.out) == (1, "")
    assert "agent 'codre' does not exist. Did you mean 'coder'?" in refused.err
    assert office(*command, "--agent", "leaver").status == 0


@pytest.mark.parametrize(
    "command", [("queue", "list"), ("queue", "cancel", "--yes"), ("response", "drop", "--yes")]
)
def test_a_filter_for_a_channel_that_does_not_exist_is_refused_with_a_suggestion(
    office: Bullpen, command: tuple[str, ...]
) -> None:
    refused = office(*command, "--channel", "telegrm")
    assert (refused.status, refused.out) == (2, "")
    assert "channel 'telegrm' does not exist. Did you mean 'telegram'?" in refused.err
    assert office(*command, "--channel", "telegram").status == 0


def test_a_filter_for_a_conversation_that_does_not_exist_is_refused(office: Bullpen) -> None:
    refused = office("queue", "list", "--conversation", "cli_nothing0")
    assert (refused.status, refused.out) == (1, "")
    assert "conversation 'cli_nothing0' does not exist" in refused.err
    (known,) = office.ok("queue", "list", "--json").json
    listed = office.ok("queue", "list", "--json", "--conversation", known["conversation_id"])
    assert listed.json == [known]
