"""bullpen queue resume: held messages and lanes, told apart by what exists."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bullpen.core.company import add_agent
from bullpen.core.message import ErrorKind
from bullpen.core.queue.lanes import pause_lane
from bullpen.core.roster.agents import Agent
from bullpen.core.store.base import Store
from tests.cli.command import Bullpen
from tests.cli.deaths import die
from tests.cli.open_store import company, direct
from tests.conformance.verbs import do, lane_row, status


@pytest.fixture
def store(on_both: Bullpen) -> Iterator[Store]:
    """The store of the command, with three agents."""
    company(on_both)
    with direct(on_both) as opened:
        yield opened


def held_message(store: Store) -> str:
    """A message that waits for a person."""
    return die(store, kind=ErrorKind.NEEDS_PERSON)


def test_a_held_message_is_resumed_by_its_id(on_both: Bullpen, store: Store) -> None:
    first, second = held_message(store), held_message(store)
    look = on_both.ok("queue", "resume", first, second, "--dry-run", "--json").json
    assert (look["matched"], len(look["first"])) == (2, 2)
    assert status(store, first) == "held"
    assert on_both.ok("queue", "resume", first).out == f"Resumed {first}.\n"
    assert [status(store, each) for each in (first, second)] == ["pending", "held"]
    refused = on_both("queue", "resume", first)
    assert "cannot" in refused.err
    assert refused.status == 1


@pytest.mark.parametrize("verb", ["resume", "let-go"])
def test_a_conversation_is_resumed_under_both_names(
    on_both: Bullpen, store: Store, verb: str
) -> None:
    held = held_message(store)
    assert on_both.ok("queue", verb, "--conversation", held, "--dry-run", "--json").json == {
        "dry_run": True,
        "matched": 1,
        "first": [on_both.ok("queue", "resume", held, "--dry-run", "--json").json["first"][0]],
    }
    assert status(store, held) == "held"
    done = on_both.ok("queue", verb, "--conversation", held, "--json").json
    assert done == {"done": 1, "conversation": held}
    assert status(store, held) == "pending"


def test_let_go_is_still_understood_and_no_longer_listed(on_both: Bullpen, store: Store) -> None:
    held = held_message(store)
    assert on_both.ok("queue", "let-go", held, "--json").json["done"] == 1
    assert status(store, held) == "pending"
    assert "let-go" not in on_both.ok("queue", "--help").out
    assert "let-go" not in on_both.ok("db", "--help").out


def test_messages_and_agents_are_not_mixed(on_both: Bullpen, store: Store) -> None:
    held = held_message(store)
    do(store, pause_lane, "coder", "on holiday")
    refused = on_both("queue", "resume", held, "coder")
    assert refused.status == 2
    assert "coder" in refused.err
    assert (status(store, held), lane_row(store)["state"]) == ("held", "paused")


def test_an_id_that_is_neither_is_refused(on_both: Bullpen, store: Store) -> None:
    held = held_message(store)
    refused = on_both("queue", "resume", held, "cli_nosuchid", "--json")
    assert (refused.status, refused.json["code"]) == (1, "not_found")
    assert status(store, held) == "held"


def test_a_message_comes_before_an_agent_of_the_same_name(on_both: Bullpen, store: Store) -> None:
    held = held_message(store)
    do(store, add_agent, Agent(id=held))
    do(store, pause_lane, held, "on holiday")
    on_both.ok("queue", "resume", held)
    assert (status(store, held), lane_row(store, held)["state"]) == ("pending", "paused")
    on_both.ok("agent", "resume", held)
    assert lane_row(store, held)["state"] == "active"


@pytest.mark.parametrize("more", [("coder",), ("--conversation", "cli_a1b2c3d4")])
def test_all_goes_with_nothing_else(on_both: Bullpen, store: Store, more: tuple[str, ...]) -> None:
    do(store, pause_lane, "coder", "on holiday")
    assert on_both("queue", "resume", "--all", *more).status == 2
    assert lane_row(store)["state"] == "paused"
