"""bullpen queue retry, drop and cancel: one by one and many at once, and nothing by accident."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from bullpen.core.company import remove_agent
from bullpen.core.message import ErrorKind
from bullpen.core.queue.manage import drop, hold
from bullpen.core.store.base import Store
from tests.cli.command import Bullpen
from tests.cli.deaths import die, many_dead
from tests.cli.open_store import company, direct
from tests.cli.terminal import CTRL_C, terminal
from tests.conformance.verbs import (
    do,
    events,
    failed,
    send,
    status,
    statuses,
    take,
    try_claim,
)
from tests.processor.working import eventually

MANY = 250
"""More than one batch, and more than two."""

BATCH_BY_BATCH = (
    sys.executable,
    "-c",
    """
from bullpen.cli.bulk import BulkOutcome
from bullpen.cli.main import main
add = BulkOutcome.add
def add_and_wait(self, *given, **more):
    add(self, *given, **more)
    input()
BulkOutcome.add = add_and_wait
main()
""",
)
"""The command, which goes on with the next batch when a line is typed."""


@pytest.fixture
def store(on_both: Bullpen) -> Iterator[Store]:
    """The store of the command, with three agents."""
    company(on_both)
    with direct(on_both) as opened:
        yield opened


@pytest.mark.parametrize("verb", ["retry", "drop", "cancel"])
@pytest.mark.parametrize("more", [(), ("--limit", "1"), ("--yes",), ("--state", "dead")])
def test_nothing_is_done_to_all_by_accident(
    on_both: Bullpen, store: Store, verb: str, more: tuple[str, ...]
) -> None:
    die(store)
    send(store)
    if verb == "cancel":
        more = tuple("pending" if each == "dead" else each for each in more)
    refused = on_both("queue", verb, *more)
    assert refused.status == 2
    assert f"bullpen queue {verb} --all --dry-run" in refused.err
    assert statuses(store) == {"dead": 1, "pending": 1}


def test_messages_are_named_or_chosen_and_not_both(on_both: Bullpen, store: Store) -> None:
    dead = die(store)
    for more in (("--all",), ("--agent", "coder"), ("--limit", "1"), ("--state", "dead")):
        assert on_both("queue", "retry", dead, *more, "--yes").status == 2
    assert status(store, dead) == "dead"


@pytest.mark.parametrize("verb", ["retry", "drop", "cancel"])
def test_what_filters_choose_is_not_touched_before_somebody_agrees(
    on_both: Bullpen, store: Store, verb: str
) -> None:
    die(store)
    send(store)
    asked = on_both("queue", verb, "--agent", "coder")
    assert asked.status == 2
    assert " 1 message: add --yes" in asked.err
    assert "--yes" in asked.err
    assert statuses(store) == {"dead": 1, "pending": 1}


def test_the_dead_are_retried_by_agent_error_and_kind(on_both: Bullpen, store: Store) -> None:
    slow, broken = die(store, error="Timeout after 30 s"), die(store)
    theirs = die(store, "tester", "timeout", channel="slack", sender="Ann", sender_id="u1")
    retry = ("queue", "retry", "--yes", "--json")
    done = on_both.ok(*retry, "--agent", "coder", "--error", "timeout", "--since", "2h").json
    assert (done["matched"], done["done"], done["failed"]) == (1, 1, 0)
    assert [status(store, each) for each in (slow, broken, theirs)] == ["pending", "dead", "dead"]
    assert on_both.ok(*retry, "--before", "2h", "--all").json["matched"] == 0
    assert on_both.ok(*retry, "--kind", "quota").json["matched"] == 0
    assert on_both.ok(*retry, "--error", "permanent", "--sender", "u1").json["done"] == 1
    assert status(store, theirs) == "pending"
    assert on_both.ok(*retry, "--kind", "permanent", "--conversation", broken).json["done"] == 1
    assert statuses(store) == {"pending": 3}


def test_a_dry_run_shows_and_counts_and_does_nothing(on_both: Bullpen, store: Store) -> None:
    dead = many_dead(store, 30)
    shown = on_both.ok("queue", "drop", "--agent", "coder", "--dry-run")
    assert dead[0] in shown.out
    assert dead[19] in shown.out
    assert dead[20] not in shown.out
    assert "10 more" in shown.err
    assert "30 messages" in shown.err
    found = on_both.ok("queue", "retry", "--all", "--limit", "7", "--dry-run", "--json").json
    assert (found["dry_run"], found["matched"], len(found["first"])) == (True, 7, 7)
    assert found["first"][0]["message"] == dead[0]
    assert "nothing was done" in on_both.ok("queue", "drop", dead[3], "--dry-run").err.lower()
    assert statuses(store) == {"dead": 30}


def test_many_are_done_in_batches_the_oldest_first_and_no_more_than_asked_for(
    on_both: Bullpen, store: Store
) -> None:
    dead = many_dead(store, MANY)
    done = on_both.ok("queue", "retry", "--all", "--limit", "120", "--yes")
    assert done.out == "Retried 120 messages.\n"
    assert {status(store, each) for each in dead[:120:17]} == {"pending"}
    assert statuses(store) == {"pending": 120, "dead": MANY - 120}
    assert on_both.ok("queue", "drop", "--all", "--yes").out == "Deleted 130 messages.\n"
    cancelled = on_both.ok("queue", "cancel", "--all", "--reason", "enough", "--yes", "--json")
    assert cancelled.json["done"] == 120
    assert statuses(store) == {"cancelled": 120}
    again = on_both.ok("queue", "retry", "--state", "cancelled", "--agent", "coder", "--yes")
    assert again.out == "Retried 120 messages.\n"
    assert "bullpen queue dead" in on_both.ok("queue", "drop", "--all", "--yes").out


def test_what_cannot_go_back_is_named_and_keeps_no_other(on_both: Bullpen, store: Store) -> None:
    mine, theirs = die(store), die(store, "stranger")
    do(store, remove_agent, "stranger")
    done = on_both("queue", "retry", "--all", "--yes")
    assert done.status == 1
    assert done.out == "Retried 1 message.\n"
    assert theirs in done.err
    assert "was removed" in done.err
    assert (status(store, mine), status(store, theirs)) == ("pending", "dead")
    document = on_both("queue", "retry", "--all", "--yes", "--json").json
    assert (document["done"], document["failed"]) == (0, 1)
    assert document["refused"][0]["code"] == "lane_closed"


def test_of_several_named_ones_those_that_may_not_are_said(on_both: Bullpen, store: Store) -> None:
    dead, waits = die(store), send(store)
    done = on_both("queue", "retry", dead, "api_nosuchid", waits, dead, "--json")
    assert done.status == 1
    assert (done.json["matched"], done.json["done"], done.json["failed"]) == (3, 1, 2)
    assert [each["code"] for each in done.json["refused"]] == ["unknown_message", "illegal_move"]
    assert "api_nosuchid" in done.err
    assert statuses(store) == {"pending": 2}
    alone = on_both("queue", "drop", waits, "--json")
    assert alone.status == 1
    assert alone.json["code"] == "illegal_move"


def test_whatever_waits_runs_or_is_held_is_cancelled(on_both: Bullpen, store: Store) -> None:
    runs = send(store)
    take(store, "coder")
    waits, held, other = send(store), send(store), send(store, agent="tester")
    do(store, hold, held, "wait")
    assert on_both.ok("queue", "cancel", "--agent", "coder", "--state", "held", "--yes").out
    assert [status(store, each) for each in (runs, waits, held)] == [
        *("processing", "pending", "cancelled")
    ]
    done = on_both.ok("queue", "cancel", "--agent", "coder", "--yes", "--json").json
    assert (done["matched"], done["done"]) == (2, 2)
    assert [status(store, each) for each in (runs, waits, other)] == [
        *("cancelled", "cancelled", "pending")
    ]


def test_a_conversation_is_cancelled_as_a_whole(on_both: Bullpen, store: Store) -> None:
    root = send(store)
    more = send(store, conversation_id=root, parent_id=root, from_agent="coder", agent="tester")
    other = send(store)
    assert on_both("queue", "cancel", "--conversation", root).status == 2
    done = on_both.ok("queue", "cancel", "--conversation", root, "--yes")
    assert done.out.startswith("Cancelled 2 messages of ")
    assert [status(store, each) for each in (root, more, other)] == [
        *("cancelled", "cancelled", "pending")
    ]


@pytest.mark.parametrize(
    "more",
    [
        ("--since", "soon"),
        ("--since", ""),
        ("--before", "-1h"),
        ("--since", "1h", "--before", "2h"),
        ("--kind", "nonsense"),
        ("--all", "--limit", "0"),
        ("--error", "\udcff"),
    ],
    ids=" ".join,
)
def test_a_filter_that_means_nothing_is_refused(
    on_both: Bullpen, store: Store, more: tuple[str, ...]
) -> None:
    dead = die(store)
    refused = on_both("queue", "retry", *more, "--yes")
    assert refused.status == 2
    assert refused.out == ""
    assert status(store, dead) == "dead"


def test_a_very_long_time_ago_is_no_mistake(on_both: Bullpen, store: Store) -> None:
    dead = die(store)
    assert on_both.ok("queue", "retry", "--since", "999999999w" * 30, "--yes").out
    assert status(store, dead) == "pending"


@pytest.mark.parametrize(
    "args",
    [
        *(("retry", "{}"), ("drop", "{}"), ("cancel", "--all", "--yes"), ("resume", "{}")),
        *(("pause", "coder"), ("resume", "coder"), ("drain", "--all")),
    ],
    ids=" ".join,
)
def test_an_agent_may_do_nothing_of_it(
    on_both: Bullpen, store: Store, args: tuple[str, ...]
) -> None:
    dead = die(store, kind=ErrorKind.NEEDS_PERSON if args[0] == "resume" else ErrorKind.PERMANENT)
    before = statuses(store)
    refused = on_both("queue", *(each.format(dead) for each in args), BULLPEN_RUN="coder.0")
    assert refused.status == 1
    assert "@coder may not" in refused.err
    assert statuses(store) == before


def test_at_a_terminal_one_is_asked_and_sees_how_far_it_is(bullpen: Bullpen) -> None:
    with direct(company(bullpen)) as store:
        many_dead(store, MANY)
        with terminal(bullpen, "queue", "retry", "--all") as person:
            person.until(f"Retry {MANY} messages? [y/N]")
            person.type("n\n")
            assert person.end() == 1
        assert statuses(store) == {"dead": MANY}
        with terminal(bullpen, "queue", "retry", "--all") as person:
            person.until("[y/N]")
            person.type("y\n")
            person.until(f"{MANY}/{MANY}")
            person.until(f"Retried {MANY} messages.")
            assert person.end() == 0
        assert statuses(store) == {"pending": MANY}


def test_at_a_terminal_a_named_message_is_not_deleted_without_a_question(bullpen: Bullpen) -> None:
    with direct(company(bullpen)) as store:
        dead = die(store)
        for answer, left in (("n", {"dead": 1}), ("y", {})):
            with terminal(bullpen, "queue", "drop", dead) as person:
                person.until("Delete 1 message? [y/N]")
                person.type(f"{answer}\n")
                assert person.end() == (1 if left else 0)
            assert statuses(store) == left


def test_ctrl_c_ends_it_between_two_batches_and_it_says_how_far_it_came(bullpen: Bullpen) -> None:
    with direct(company(bullpen)) as store:
        many_dead(store, MANY)
        args = ("queue", "retry", "--all", "--yes")
        with terminal(bullpen, *args, program=BATCH_BY_BATCH) as person:
            eventually(lambda: statuses(store).get("pending") == 100, "the first batch is done")
            person.type(CTRL_C)
            person.until("^C")
            person.type("\n")
            person.until("Interrupted: ")
            assert person.end() == 1
        found = re.search(
            r"Retried (\d+) messages\.\nInterrupted: (\d+) messages unchanged", person.shown
        )
        assert found is not None, person.shown
        assert tuple(map(int, found.groups())) == (100, MANY - 100)
        assert statuses(store) == {"pending": 100, "dead": MANY - 100}
        shown = bullpen.ok("queue", "status", "--json").json
        assert (shown["pending"], shown["dead"]) == (100, MANY - 100)
        assert bullpen.ok("queue", "retry", "--all", "--yes").out.startswith("Retried 150 messages")


def test_what_dies_again_meanwhile_is_not_retried_again(bullpen: Bullpen) -> None:
    """Beside somebody who lets them die as soon as they wait."""
    with direct(company(bullpen)) as store:
        many_dead(store, MANY)
        args = ("queue", "retry", "--all", "--yes")
        with terminal(bullpen, *args, program=BATCH_BY_BATCH) as person:
            for batch in (100, 100, 50):
                eventually(lambda: statuses(store).get("pending") == batch, "a batch is done")  # noqa: B023
                while (found := try_claim(store, "coder")) is not None:
                    failed(store, found.token, ErrorKind.PERMANENT, "at once")
                person.type("\n")
            assert person.end() == 0
        assert statuses(store) == {"dead": MANY}
        retried = Counter(row["message_id"] for row in events(store, "message_retried"))
        assert (len(retried), set(retried.values())) == (MANY, {1})
        assert f"Retried {MANY} messages." in person.shown


def test_what_dies_again_does_not_take_the_place_of_what_is_gone(bullpen: Bullpen) -> None:
    """The count that was agreed to has room for them, because others were dropped meanwhile."""
    with direct(company(bullpen)) as store:
        died = many_dead(store, MANY)
        args = ("queue", "retry", "--all", "--yes")
        with terminal(bullpen, *args, program=BATCH_BY_BATCH) as person:
            eventually(lambda: statuses(store).get("pending") == 100, "the first batch is done")
            while (found := try_claim(store, "coder")) is not None:
                failed(store, found.token, ErrorKind.PERMANENT, "at once")
            with store.write() as tx:
                for each in died[100:]:
                    drop(tx, each)
            person.type("\n\n\n")
            assert person.end() == 0
        assert statuses(store) == {"dead": 100}
        retried = Counter(row["message_id"] for row in events(store, "message_retried"))
        assert (len(retried), set(retried.values())) == (100, {1})
        assert "Skipped 150 messages" in person.shown
