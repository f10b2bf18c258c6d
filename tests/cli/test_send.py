"""bullpen send: what it shows while it waits, and when it waits no longer."""

from __future__ import annotations

import json
import re
import time

import psutil
import pytest

from bullpen.core.message import Answer, Outcome
from bullpen.core.queue.lanes import pause_lane
from bullpen.core.queue.manage import cancel, hold
from tests.cli.command import Bullpen
from tests.cli.open_store import company, direct
from tests.cli.processor import processor
from tests.cli.resting import comes_to_rest
from tests.conformance.verbs import do, done, failed, rows, statuses, take
from tests.processor.working import eventually

from bullpen.core.models import MESSAGES  # isort: skip


from tests.cli.sending import (
    ONLY_WHEN_WOKEN,
    at_work,
    claimed,
    line,
    office,
    say,
    sending,
)

__all__ = ["office"]

SELDOM = {"BULLPEN_POLL_SECONDS": "600"}


def test_handoffs_are_followed_until_all_is_at_rest(on_both: Bullpen) -> None:
    office = company(on_both)
    with processor(office):
        told = office.ok("send", "@coder: !say mine [@tester: !say yours]")
    assert told.out == "@coder: mine @coder → @tester: !say yours\n@tester: yours\n"
    assert told.err == "", "the answer shows the handoff, and nothing failed"


def test_a_handoff_is_shown_once_and_also_where_no_answer_shows_it(office: Bullpen) -> None:
    with processor(office):
        told = office.ok("send", "@coder: [@tester: !say yours]")
        assert told.out == "@coder → @tester: !say yours\n@tester: yours\n"
        assert told.err == ""
        told = office.ok("send", "@coder: !say mine [@tester: !say yours]", "--json")
    assert told.err == "@coder → @tester: mine !say yours\n"


def test_what_a_run_does_is_shown_as_it_comes_beside_the_answers(on_both: Bullpen) -> None:
    office = company(on_both)
    with at_work(office) as store, sending(office, "@coder fix it") as process:
        claim = claimed(store)
        say(store, claim, "reading\nlogin.py")
        assert line(process.stderr) == "@coder is working: reading login.py\n"
        say(store, claim, "x" * 500)
        assert line(process.stderr).rstrip().endswith("x…")
        done(store, claim.token, Outcome(answers=(Answer(message="it is fixed\nand tested"),)))
        out, err = process.communicate(timeout=60)
    assert out == "@coder: it is fixed\nand tested\n"
    assert process.returncode == 0
    assert "working" not in err


def test_quiet_prints_answers_alone(office: Bullpen) -> None:
    with processor(office):
        told = office.ok("send", "-q", "@coder: !say mine [@tester: !say yours]")
    assert told.out.endswith("@tester: yours\n")
    assert told.err == ""


def test_an_answer_is_shown_at_once(on_both: Bullpen) -> None:
    office = company(on_both)
    late = []
    with at_work(office) as store:
        for number in range(20):
            with sending(office, "@coder fix it", program=ONLY_WHEN_WOKEN, **SELDOM) as process:
                claim = claimed(store)
                say(store, claim, "reading")
                line(process.stderr)
                time.sleep(0.02 * (number % 5))
                done(store, claim.token)
                at = time.monotonic()
                assert line(process.stdout) == "@coder: done\n"
                late.append(time.monotonic() - at)
            if number >= 4 and min(late) < 0.1:
                break
    # 15 ms on a quiet machine; on a busy one the best of them tells how it is meant.
    assert min(late) < 0.1, late


def test_waiting_costs_nothing(on_both: Bullpen) -> None:
    office = company(on_both)
    with at_work(office) as store, sending(office, "@coder fix it") as process:
        claim = claimed(store)
        say(store, claim, "reading")
        line(process.stderr)
        comes_to_rest(psutil.Process(process.pid), 0.05)


def test_without_a_processor_it_ends_at_once_and_says_how_to_start_one(office: Bullpen) -> None:
    result = office("send", "hello @coder", "--agent", "coder")
    assert result.status == 75
    assert result.out == ""
    assert "stays queued because the processor is not running.\n  Next: bullpen up" in result.err
    assert office("send", "hello", "--agent", "coder", "--json").json["state"] == "waiting"


def test_an_agent_of_outside_workers_needs_no_processor(office: Bullpen) -> None:
    office.ok("agent", "set", "coder", "--provider", "http")
    with direct(office) as store, sending(office, "@coder count", "--timeout", "240") as process:
        eventually(lambda: statuses(store) == {"pending": 1}, "it waits")
        done(store, take(store, "coder").token)
        assert process.wait(60) == 0


def test_it_ends_when_the_agent_is_paused_meanwhile(office: Bullpen) -> None:
    with at_work(office) as store, sending(office, "@coder fix it") as process:
        eventually(lambda: statuses(store) == {"pending": 1}, "it waits")
        do(store, pause_lane, "coder", "on holiday")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 75
    assert "because @coder is paused (on holiday).\n  Next: bullpen agent resume coder\n" in err


def test_it_ends_when_the_message_is_held(office: Bullpen) -> None:
    with at_work(office) as store, sending(office, "@coder fix it") as process:
        eventually(lambda: statuses(store) == {"pending": 1}, "it waits")
        (row,) = rows(store, MESSAGES)
        do(store, hold, row["message_id"], "wait for the budget")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 75
    assert "is held: wait for the budget" in err
    assert f"bullpen queue resume {row['message_id']}" in err


def test_it_ends_when_the_message_is_cancelled(office: Bullpen) -> None:
    with at_work(office) as store, sending(office, "@coder fix it", "--json") as process:
        eventually(lambda: statuses(store) == {"pending": 1}, "it waits")
        (row,) = rows(store, MESSAGES)
        do(store, cancel, row["message_id"], "not needed any more")
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    document = json.loads(out)
    assert (document["state"], document["messages"]) == ("failed", {"cancelled": 1})
    assert document["unfinished"][0]["why"] == "not needed any more"
    assert "is cancelled: not needed any more" in err


def test_a_dead_message_is_a_failure_that_says_why_and_what_next(office: Bullpen) -> None:
    with processor(office):
        result = office("send", "@coder !fail permanent")
    assert result.status == 1
    assert result.out.startswith("@coder could not answer: ")
    assert re.fullmatch(
        r"  Next: bullpen queue retry (cli_\w+)\n  Details: bullpen trace \1\n", result.err
    )
    assert (result.out + result.err).count("could not answer") == 1


def test_an_agent_that_is_paused_by_a_failure_is_one_statement(office: Bullpen) -> None:
    office.ok("agent", "set", "coder", "--provider", "claude")
    with processor(office):
        result = office("send", "@coder hello")
        assert result.status == 75
        assert result.out.startswith("@coder is paused: ")
        assert "bullpen agent resume coder" in result.out
        assert re.fullmatch(r"  Details: bullpen trace cli_\w+\n", result.err)
        again = office("send", "@coder hello")
    assert (again.status, again.out) == (75, "")
    assert re.fullmatch(
        r"No answer yet: (cli_\w+) stays queued because @coder is paused \(.*\)\.\n"
        r"  Next: bullpen agent resume coder\n  Details: bullpen trace \1\n",
        again.err,
    )


def test_a_failure_that_is_tried_again_is_told_and_waited_for(office: Bullpen) -> None:
    with at_work(office) as store, sending(office, "@coder fix it") as process:
        failed(store, claimed(store).token, error="it broke", retry_after=0)
        done(store, claimed(store).token)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "@coder: done\n")
    assert "@coder failed: it broke. Next try in a moment" in err


def test_what_is_due_only_after_the_wait_is_not_waited_for(office: Bullpen) -> None:
    with at_work(office):
        began = time.monotonic()
        result = office("send", "@coder hello", "--delay", "20m")
    assert result.status == 75
    assert time.monotonic() - began < 60
    assert "is not due before the wait ends" in result.err


def test_one_that_another_run_answered_as_well_shows_that_answer(office: Bullpen) -> None:
    with at_work(office) as store:
        first = office.ok("send", "@coder first", "--no-wait").out.strip()
        with sending(office, "@coder second") as process:
            eventually(lambda: statuses(store) == {"pending": 2}, "both wait")
            claim = take(store, "coder")
            assert len(claim.messages) == 2
            done(store, claim.token)
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "@coder: done\n")
    assert f"Answered together with {first}" in err


def test_the_document_says_all_of_it_once(on_both: Bullpen) -> None:
    office = company(on_both)
    with processor(office):
        told = office.ok("send", "@coder !say one [@tester: !usage 5 0.25\n!say two]", "--json")
    assert told.out.count("\n") == 1
    assert told.json["state"] == "answered"
    assert told.json["messages"] == {"completed": 2}
    assert told.json["cost"] == pytest.approx(0.25)
    assert [each["agent"] for each in told.json["answers"]] == ["coder", "tester"]


def test_answers_of_many_lines_are_told_apart(office: Bullpen) -> None:
    with at_work(office) as store, sending(office, "[@coder: a] [@tester: b]", "-q") as process:
        for name in ("coder", "tester"):
            eventually(lambda: len(statuses(store)) > 0, "they wait")
            claim = take(store, name)
            done(store, claim.token, Outcome(answers=(Answer(message=f"{name}\nsays"),)))
        out, _ = process.communicate(timeout=60)
    assert out == "@coder: coder\nsays\n\n@tester: tester\nsays\n"
