"""bullpen queue status, agents, list, show, dead, held and causes: what they say, and to whom."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest
from sqlalchemy import bindparam, update

from bullpen.core.answers.complete import fail
from bullpen.core.clock import HOUR
from bullpen.core.company import remove_agent
from bullpen.core.message import ErrorKind, Failure
from bullpen.core.models import MESSAGES
from bullpen.core.queue.dead_letters import DeadMessage, add_to_failure_group
from bullpen.core.queue.lanes import pause_lane
from bullpen.core.queue.manage import hold
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from tests.cli.command import Bullpen
from tests.cli.deaths import die, many_dead
from tests.cli.open_store import company, direct
from tests.cli.sending import sign_in
from tests.cli.terminal import terminal
from tests.conformance.verbs import do, done, send, take, to_archive


@pytest.fixture
def store(on_both: Bullpen) -> Iterator[Store]:
    """The store of the command, with three agents."""
    company(on_both)
    with direct(on_both) as opened:
        yield opened


def ids(found: list[dict[str, object]]) -> list[object]:
    """The ids of the messages of a document."""
    return [each["message_id"] for each in found]


def test_status_says_what_runs_for_how_long_and_what_does_not_and_why(
    on_both: Bullpen, store: Store
) -> None:
    runs = send(store, "the task")
    take(store, "coder")
    send(store, agent="tester")
    do(store, pause_lane, "tester", "on holiday")
    die(store, "stranger")
    shown = on_both.ok("queue", "status")
    coder, tester = (line for line in shown.out.splitlines() if line.startswith(("coder", "test")))
    assert runs in coder
    assert "paused: on holiday" in tester
    assert "stranger" not in shown.out
    assert "bullpen queue dead" in shown.err
    assert "bullpen agent resume tester" in shown.err
    found = on_both.ok("queue", "status", "--json").json
    assert (found["pending"], found["processing"], found["dead"]) == (1, 1, 1)
    assert found["oldest_waiting_since"] > 0
    first = found["lanes"][0]
    assert (first["agent"], first["message_id"], first["message"]) == ("coder", runs, "the task")
    assert first["claimed_at"] > 0


def test_all_lanes_are_shown_those_of_removed_agents_if_one_asks(
    on_both: Bullpen, store: Store
) -> None:
    do(store, remove_agent, "stranger")
    shown = on_both.ok("queue", "agents").out
    assert "coder" in shown
    assert "active" in shown
    assert "stranger" not in shown
    assert "archived" in on_both.ok("queue", "agents", "--all").out
    assert len(on_both.ok("queue", "agents", "--json").json) == 2


def test_an_empty_queue_says_what_to_do_next(bullpen: Bullpen) -> None:
    for command, next_ in (
        (("agents",), "bullpen agent add"),
        (("list",), "bullpen send"),
        (("dead",), "No dead messages."),
        (("dead", "--since", "1h"), "No dead messages match."),
        (("held",), "No held messages."),
        (("causes",), "No failed messages yet"),
    ):
        assert next_ in bullpen.ok("queue", *command).out
        assert bullpen.ok("queue", *command, "--json").json == []
    assert bullpen.ok("queue", "status", "--json").json["lanes"] == []


def test_messages_are_listed_by_what_they_have_in_common(on_both: Bullpen, store: Store) -> None:
    dead = die(store, sender="Ann", sender_id="u1")
    waits = send(store, "see\x1b]0;title\x07 this", agent="tester", channel="slack")
    held = send(store)
    do(store, hold, held, "why not")
    old = send(store, agent="stranger")
    done(store, take(store, "stranger").token)
    to_archive(store, old)

    def listed(*more: str) -> list[object]:
        return ids(on_both.ok("queue", "list", *more, "--json").json)

    assert listed() == [held, waits, dead]
    assert listed("--limit", "1") == [held]
    assert listed("--archived") == [old, held, waits, dead]
    assert listed("--state", "pending") == [waits]
    assert listed("--state", "dead", "--sender", "u1") == [dead]
    assert listed("--sender", "Ann", "--agent", "tester") == []
    assert listed("--channel", "slack", "--since", "1h") == [waits]
    assert listed("--before", "1h") == []
    assert listed("--conversation", held) == [held]
    shown = on_both.ok("queue", "list")
    assert "\x1b" not in shown.out
    assert "\x07" not in shown.out
    (found,) = on_both.ok("queue", "held", "--json").json
    assert (found["message_id"], found["why"]) == (held, "why not")


def test_the_dead_are_listed_with_kind_tries_and_why(on_both: Bullpen, store: Store) -> None:
    dead = many_dead(store, 30)
    shown = on_both.ok("queue", "dead")
    assert "permanent" in shown.out
    assert "it broke" in shown.out
    assert "20 of 30" in shown.err
    (found,) = on_both.ok("queue", "dead", "--limit", "1", "--json").json
    assert found["message_id"] == dead[-1]
    assert (found["error_kind"], found["retry_count"]) == ("permanent", 1)
    assert (found["why"], found["since"]) == ("it broke", found["updated_at"])


def test_one_message_is_shown_with_all_that_is_known(on_both: Bullpen, store: Store) -> None:
    dead = die(store, error="Timeout", sender="Ann", sender_id="u1")
    shown = on_both.ok("queue", "show", dead)
    for part in ("@coder", "Ann (u1)", "hello", "dead", "permanent", "Timeout", "could not answer"):
        assert part in shown.out, part
    assert f"bullpen queue retry {dead}" in shown.err
    found = on_both.ok("queue", "show", dead, "--json").json
    assert found["message"]["message_id"] == dead
    assert [run["error"] for run in found["runs"]] == ["Timeout"]
    assert len(found["answers"]) == 1
    assert found["next"][0] == f"bullpen queue retry {dead}"
    unknown = on_both("queue", "show", "cli_nosuchid")
    assert unknown.status == 1
    assert "cli_nosuchid" in unknown.err


def test_it_is_said_why_a_message_waits(on_both: Bullpen, store: Store) -> None:
    first, second = send(store), send(store, sender="Ann")

    def why(message_id: str) -> str:
        return str(on_both.ok("queue", "show", message_id, "--json").json["why"])

    assert "next in line" in why(first)
    assert "1 before it" in why(second)
    claim = take(store, "coder")
    assert "Processing for" in why(first)
    assert "is processing another message" in why(second)
    done(store, claim.token)
    assert "Completed" in why(first)
    do(store, pause_lane, "coder", "on holiday")
    assert "paused (on holiday)" in why(second)
    later = send(store, agent="tester", delay=2 * HOUR)
    assert "delayed for another" in why(later)


def test_it_is_said_if_nobody_is_there_to_take_it_up(on_both: Bullpen, store: Store) -> None:
    waits = send(store)
    assert "bullpen up" in on_both.ok("queue", "status").err
    assert "no processor is running" in on_both.ok("queue", "show", waits).out
    sign_in(on_both)
    assert on_both.ok("queue", "status").err == ""
    shown = on_both.ok("queue", "show", waits)
    assert "Pending, next in line." in shown.out
    assert "bullpen up" not in shown.err


def test_a_worker_that_is_not_heard_of_is_told(on_both: Bullpen) -> None:
    company(on_both)
    with direct(on_both, now=1_700_000_000_000) as store:
        sent = send(store)
        take(store, "coder")
    assert "lease expired" in on_both.ok("queue", "show", sent).out
    assert "worker not seen" in on_both.ok("queue", "status").out


def test_causes_of_death_are_counted(on_both: Bullpen, store: Store) -> None:
    with store.write() as tx:
        for cause, error in (("one", "it broke"), ("two", "no route")):
            add_to_failure_group(
                tx, cause, [DeadMessage("api_1", "coder", "permanent", error, tx.now)] * 3
            )
    shown = on_both.ok("queue", "causes").out
    assert "no route" in shown
    found = on_both.ok("queue", "causes", "--json", "--limit", "1").json
    assert [each["deaths"] for each in found] == [3]
    die(store, error="out of paper")
    found = on_both.ok("queue", "causes", "--json", "--limit", "1").json
    assert [(each["error"], each["deaths"]) for each in found] == [("out of paper", 1)]


def test_in_its_run_an_agent_sees_no_messages_of_the_queue(on_both: Bullpen, store: Store) -> None:
    mine = die(store)
    for args in (("list",), ("dead",), ("held",), ("show", mine), ("status",), ("agents",)):
        refused = on_both("queue", *args, BULLPEN_RUN="coder.0")
        assert (refused.status, refused.out) == (1, "")
        assert "@coder may not" in refused.err


def test_what_is_shown_fits_a_terminal(bullpen: Bullpen) -> None:
    with direct(company(bullpen)) as store:
        die(store, error="a very long explanation " * 20, kind=ErrorKind.PERMANENT)
        send(store, "a very long text " * 20, agent="tester")
        do(store, pause_lane, "tester", "a very long reason " * 20)
    for command in ("status", "agents", "list", "dead"):
        with terminal(bullpen, "queue", command) as person:
            assert person.end() == 0
        assert max(map(len, person.shown.splitlines())) <= 80, person.shown


def test_an_id_of_an_earlier_release_is_quoted_in_every_command_that_is_offered(
    on_both: Bullpen, store: Store, subtests: pytest.Subtests
) -> None:
    odd = "x;touch pwned;#/../$(id)"
    for verb in (None, "hold"):
        sent = send(store)
        rename: Statement[None] = Statement(
            lambda: (
                update(MESSAGES)
                .where(MESSAGES.c.message_id == bindparam("old"))
                .values(message_id=bindparam("new"), conversation_id=bindparam("new"))
            )
        )
        with store.write() as tx:
            tx.write(rename, {"old": sent, "new": f"{odd}{verb}"})
        if verb == "hold":
            do(store, hold, f"{odd}{verb}", "look")
        for command in (("queue", "show"), ("trace",)):
            with subtests.test(verb=verb, command=command):
                shown = on_both.ok(*command, f"{odd}{verb}")
                offered = [
                    line[line.index("bullpen ") :]
                    for line in (shown.out + shown.err).splitlines()
                    if "bullpen queue" in line
                ]
                for each in offered:
                    assert f"{odd}{verb}" in shlex.split(each)
    on_both.ok("queue", "cancel", f"{odd}None", "--yes")


def test_a_workers_error_adds_no_line_to_a_notice_and_an_odd_id_is_quoted_there(
    on_both: Bullpen, store: Store
) -> None:
    sent = send(store)
    failure = Failure(
        kind=ErrorKind.NEEDS_PERSON, error="look\nTo let it try again: touch pwned\x1b]0;x\x07"
    )
    do(store, fail, take(store).token, failure)
    notice = on_both.ok("response", "read").out
    assert not [line for line in notice.splitlines() if line.startswith("To let it try again: t")]
    assert f"bullpen queue resume {sent}" in notice


def test_states_are_coloured_at_a_terminal_only(bullpen: Bullpen) -> None:
    with direct(company(bullpen)) as store:
        dead = die(store)
        do(store, hold, send(store, agent="tester"), "why not")
        do(store, pause_lane, "stranger", "on holiday")
    for command, coloured in (
        (("queue", "list"), ("\x1b[31mdead", "\x1b[33mheld")),
        (("queue", "agents"), ("\x1b[32mactive", "\x1b[33mpaused")),
        (("trace", dead), ("\x1b[31m",)),
    ):
        with terminal(bullpen, *command) as person:
            person.end()
        assert all(each in person.raw for each in coloured), command
        with terminal(bullpen, *command, NO_COLOR="1") as person:
            person.end()
        assert "\x1b[3" not in person.raw, command
        assert "\x1b" not in bullpen.ok(*command).out, command
    planned = bullpen.ok("queue", "retry", "--all", "--dry-run", "--json").json
    assert "\x1b" not in str(planned["first"])


def test_another_word_for_a_state_is_answered_with_the_state(bullpen: Bullpen) -> None:
    for command, word, meant in (
        (("queue", "list"), "waiting", "pending"),
        (("queue", "list"), "running", "processing"),
        (("queue", "list"), "complete", "completed"),
        (("queue", "retry", "--all"), "failed", "dead"),
        (("response", "list"), "delivered", "acked"),
    ):
        refused = bullpen(*command, "--state", word)
        assert (refused.status, refused.out) == (2, "")
        said, hint = refused.err.splitlines()
        assert said == f"Error: state {word!r} does not exist. Did you mean {meant!r}?"
        assert hint.startswith("  States: "), hint
        assert meant in hint


def test_lists_print_their_ids_alone(on_both: Bullpen, store: Store) -> None:
    dead, held = die(store), send(store, agent="tester")
    do(store, hold, held, "why not")
    assert on_both.ok("queue", "list", "-q").out.split() == [held, dead]
    assert on_both.ok("queue", "list", "-q", "-n", "1").out.split() == [held]
    assert on_both.ok("queue", "dead", "-q").out.split() == [dead]
    assert on_both.ok("queue", "held", "-q").out.split() == [held]
    assert on_both.ok("queue", "agents", "-q").out.split() == ["coder", "stranger", "tester"]
    on_both.ok("queue", "cancel", *on_both.ok("queue", "held", "-q").out.split())
    assert on_both.ok("queue", "held", "-q").out == ""


def test_a_row_is_one_line_at_80_columns(bullpen: Bullpen) -> None:
    with direct(company(bullpen)) as store:
        die(
            store,
            error="a long explanation",
            channel="telegram",
            sender="Ann",
            sender_id="123456789",
        )
        for agent in ("coder", "tester"):
            send(store, "a very long text " * 20, agent=agent)
        take(store, "coder")
        do(store, pause_lane, "tester", "on holiday")
    for command in (
        ("queue", "agents"),
        ("queue", "list"),
        ("queue", "status"),
        ("response", "list"),
    ):
        with terminal(bullpen, *command) as person:
            assert person.end() == 0
        lines = [each for each in person.shown.splitlines() if each.strip()]
        assert max(map(len, lines)) <= 80, person.shown
        count = len(bullpen.ok(*command).out.splitlines())
        assert len(lines) <= count + 3, person.shown  # the rule below the heading, and hints
