"""bullpen queue pause, resume and drain: one agent, several or all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bullpen.core.company import remove_agent
from bullpen.core.store.base import Store
from tests.cli.command import Bullpen
from tests.cli.open_store import company, direct
from tests.conformance.verbs import do, lane_row, send, take, try_claim


@pytest.fixture
def store(on_both: Bullpen) -> Iterator[Store]:
    """The store of the command, with three agents."""
    company(on_both)
    with direct(on_both) as opened:
        yield opened


def states(store: Store) -> list[object]:
    """The lanes of coder, stranger and tester."""
    return [lane_row(store, each)["state"] for each in ("coder", "stranger", "tester")]


def test_several_are_paused_and_resumed(on_both: Bullpen, store: Store) -> None:
    send(store)
    done = on_both.ok("queue", "pause", "tester", "coder", "--reason", "on holiday")
    assert "bullpen agent resume tester coder" in done.out
    assert states(store) == ["paused", "active", "paused"]
    assert lane_row(store)["reason"] == "on holiday"
    assert try_claim(store) is None
    found = on_both.ok("queue", "resume", "coder", "stranger", "--json").json
    assert (found["moved"], found["already"]) == (["coder"], ["stranger"])
    assert states(store) == ["active", "active", "paused"]
    assert take(store).agent == "coder"


def test_a_draining_agent_takes_nothing_in_and_works_off_what_is_there(
    on_both: Bullpen, store: Store
) -> None:
    send(store)
    on_both.ok("queue", "drain", "coder", "--reason", "to be replaced")
    refused = on_both("send", "--no-wait", "@coder hello")
    assert refused.status == 75
    assert take(store).agent == "coder"
    assert "draining: to be replaced" in on_both.ok("queue", "status").out
    on_both.ok("queue", "resume", "coder")
    on_both.ok("send", "--no-wait", "@coder hello")


def test_all_are_moved_but_those_that_were_removed(on_both: Bullpen, store: Store) -> None:
    do(store, remove_agent, "stranger")
    assert on_both.ok("queue", "pause", "--all", "--dry-run").out
    assert states(store) == ["active", "archived", "active"]
    assert on_both.ok("queue", "pause", "--all", "--json").json["moved"] == ["coder", "tester"]
    assert states(store) == ["paused", "archived", "paused"]
    on_both.ok("queue", "resume", "--all")
    assert states(store) == ["active", "archived", "active"]
    refused = on_both("queue", "resume", "stranger")
    assert refused.status == 1
    assert "stranger" in refused.err
    assert states(store)[1] == "archived"


def test_if_one_is_unknown_none_is_moved(on_both: Bullpen, store: Store) -> None:
    assert on_both("queue", "pause", "coder", "nobody").status == 1
    assert states(store) == ["active", "active", "active"]


@pytest.mark.parametrize("verb", ["pause", "resume", "drain"])
def test_it_must_be_said_whose(bullpen: Bullpen, verb: str) -> None:
    assert bullpen("queue", verb).status == 2
    assert bullpen("queue", verb, "coder", "--all").status == 2
    assert "bullpen agent add" in bullpen.ok("queue", verb, "--all").out
