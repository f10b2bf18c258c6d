"""bullpen send: what it takes, what it shows while it waits, and when it waits no longer."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from bullpen.core.events.append import EventType, tell
from bullpen.core.message import Claim, Priority
from bullpen.core.outcome import Answer, Outcome
from bullpen.core.queue.cancel import cancel
from bullpen.core.queue.hold import hold
from bullpen.core.queue.lanes import pause_lane
from bullpen.core.store.base import Store
from bullpen.core.workers import register
from tests.cli.command import PROGRAM, Bullpen
from tests.cli.direct import company, direct
from tests.cli.processor import processor
from tests.conformance.verbs import do, done, failed, rows, statuses, take, try_claim
from tests.processor.working import eventually

from bullpen.core.models import MESSAGES  # isort: skip


@pytest.fixture
def office(bullpen: Bullpen) -> Bullpen:
    """Three agents, two of them in the team dev."""
    return company(bullpen)


@contextmanager
def at_work(bullpen: Bullpen) -> Iterator[Store]:
    """The store, with a processor in the register: this test does its work."""
    with direct(bullpen) as store:
        do(store, register, "processor")
        yield store


@contextmanager
def sending(bullpen: Bullpen, *args: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """`bullpen send` in a process of its own, with pipes."""
    process = subprocess.Popen(
        [*PROGRAM, "send", *args],
        env=bullpen.environment(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def claimed(store: Store) -> Claim:
    """Wait for a message to claim."""
    found: list[Claim] = []

    def got() -> bool:
        claim = try_claim(store)
        found.extend([] if claim is None else [claim])
        return claim is not None

    eventually(got, "there is something to claim")
    return found[0]


def line(stream: object) -> str:
    """The next line of a pipe."""
    return str(stream.readline())  # type: ignore[attr-defined]


def say(store: Store, claim: Claim, text: str) -> None:
    """What a run says while it works."""
    do(store, lambda tx: tell(tx, EventType.AGENT_PROGRESS, claim.primary, text=text))


def test_handoffs_are_followed_until_all_is_at_rest(on_both: Bullpen) -> None:
    office = company(on_both)
    with processor(office):
        told = office.ok("send", "@coder: !say mine [@tester: !say yours]")
    assert told.out == "@coder: mine @coder → @tester: !say yours\n@tester: yours\n"
    assert "@coder → @tester: mine !say yours\n" in told.err
    assert "bullpen trace cli_" in told.err


def test_what_a_run_does_is_shown_as_it_comes_beside_the_answers(on_both: Bullpen) -> None:
    office = company(on_both)
    with at_work(office) as store, sending(office, "@coder fix it") as process:
        claim = claimed(store)
        say(store, claim, "reading\nlogin.py")
        assert line(process.stderr) == "@coder works: reading login.py\n"
        say(store, claim, "x" * 500)
        assert line(process.stderr).rstrip().endswith("x…")
        done(store, claim.token, Outcome(answers=(Answer(message="it is fixed\nand tested"),)))
        out, err = process.communicate(timeout=60)
    assert out == "@coder: it is fixed\nand tested\n"
    assert process.returncode == 0
    assert "works" not in err


def test_quiet_prints_answers_alone(office: Bullpen) -> None:
    with processor(office):
        told = office.ok("send", "-q", "@coder: !say mine [@tester: !say yours]")
    assert told.out.endswith("@tester: yours\n")
    assert told.err == ""


def test_an_answer_is_shown_at_once(on_both: Bullpen) -> None:
    office = company(on_both)
    late = []
    with at_work(office) as store:
        for number in range(9):
            with sending(office, "@coder fix it") as process:
                claim = claimed(store)
                say(store, claim, "reading")
                line(process.stderr)
                time.sleep(0.05 * number)  # whenever it comes between two looks
                done(store, claim.token)
                at = time.monotonic()
                assert line(process.stdout) == "@coder: done\n"
                late.append(time.monotonic() - at)
    # 15 ms at the most on a quiet machine.
    assert sorted(late)[4] < 0.1, late


def test_waiting_costs_nothing(on_both: Bullpen) -> None:
    office = company(on_both)
    with at_work(office) as store, sending(office, "@coder fix it") as process:
        claim = claimed(store)
        say(store, claim, "reading")
        line(process.stderr)
        waiting = psutil.Process(process.pid)
        used, began = sum(waiting.cpu_times()[:2]), time.monotonic()
        time.sleep(2.0)
        busy = (sum(waiting.cpu_times()[:2]) - used) / (time.monotonic() - began)
    assert busy < 0.05


def test_without_a_processor_it_ends_at_once_and_says_how_to_start_one(office: Bullpen) -> None:
    result = office("send", "hello @coder", "--agent", "coder")
    assert result.status == 75
    assert result.out == ""
    assert "no processor runs. Next: bullpen up" in result.err
    assert office("send", "hello", "--agent", "coder", "--json").json["state"] == "waiting"


def test_an_agent_of_outside_workers_needs_no_processor(office: Bullpen) -> None:
    office.ok("agent", "set", "coder", "--provider", "http")
    with direct(office) as store, sending(office, "@coder count", "--timeout", "60") as process:
        eventually(lambda: statuses(store) == {"pending": 1}, "it waits")
        done(store, take(store, "coder").token)
        assert process.wait(60) == 0


def test_it_ends_when_the_agent_is_paused_meanwhile(office: Bullpen) -> None:
    with at_work(office) as store, sending(office, "@coder fix it") as process:
        eventually(lambda: statuses(store) == {"pending": 1}, "it waits")
        do(store, pause_lane, "coder", "on holiday")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 75
    assert "@coder is paused (on holiday). Next: bullpen agent resume coder" in err


def test_it_ends_when_the_message_is_held(office: Bullpen) -> None:
    with at_work(office) as store, sending(office, "@coder fix it") as process:
        eventually(lambda: statuses(store) == {"pending": 1}, "it waits")
        (row,) = rows(store, MESSAGES)
        do(store, hold, row["message_id"], "wait for the budget")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 75
    assert "is held: wait for the budget" in err
    assert f"bullpen queue let-go {row['message_id']}" in err


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
    assert "could not answer: failed as it was told to" in result.out
    assert "is dead: failed as it was told to" in result.err
    assert "bullpen queue retry cli_" in result.err


def test_a_failure_that_is_tried_again_is_told_and_waited_for(office: Bullpen) -> None:
    with at_work(office) as store, sending(office, "@coder fix it") as process:
        failed(store, claimed(store).token, error="it broke", retry_after=0)
        done(store, claimed(store).token)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "@coder: done\n")
    assert "@coder failed: it broke; it tries again in a moment" in err


def test_what_is_due_only_after_the_wait_is_not_waited_for(office: Bullpen) -> None:
    with at_work(office):
        began = time.monotonic()
        result = office("send", "@coder hello", "--delay", "20m")
    assert result.status == 75
    assert time.monotonic() - began < 60
    assert "its turn" in result.err or "the turn of cli_" in result.err


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
    assert f"answered together with {first}" in err


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


def test_the_text_comes_from_standard_input(office: Bullpen) -> None:
    with direct(office) as store:
        office.ok("send", "--agent", "coder", "--no-wait", stdin="one ☃\n")
        office.ok("send", "-", "--agent", "coder", "--no-wait", stdin="two")
        assert [row["message"] for row in rows(store, MESSAGES)] == ["one ☃\n", "two"]
    assert (
        office("send", "-", "--no-wait", stdin="x" * 101, BULLPEN_MESSAGE_BYTES="100").status == 2
    )
    assert office("send", "--no-wait", "--agent", "coder", stdin="").status == 2


def test_a_team_a_priority_a_delay_and_a_deadline(office: Bullpen) -> None:
    office.ok("send", "go", "--team", "dev", "--no-wait")
    office.ok("send", "go", "--agent", "coder", "--no-wait", "--priority", "critical")
    office.ok("send", "go", "--agent", "coder", "--no-wait", "--delay", "1h", "--deadline", "2h")
    with direct(office) as store:
        team, urgent, later = rows(store, MESSAGES)
    assert (team["agent"], team["team_id"]) == ("coder", "dev")
    assert urgent["priority"] == Priority.CRITICAL
    assert later["available_at"] - later["created_at"] == 3_600_000
    assert later["deadline"] - later["created_at"] == 7_200_000


@pytest.mark.parametrize(
    "args",
    [
        ("--team", "coder"),
        ("--team", "dev", "--agent", "coder"),
        ("--delay", "soon"),
        ("--deadline", "yesterday"),
        ("--priority", "huge"),
        ("--timeout", "-1"),
        ("--file", "/nowhere/at/all"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_is_refused_and_nothing_is_sent(
    office: Bullpen, args: tuple[str, ...]
) -> None:
    result = office("send", "hello", "--no-wait", *args)
    assert result.status in (1, 2)
    assert result.out == ""
    with direct(office) as store:
        assert rows(store, MESSAGES) == []


def test_files_go_along_as_copies_of_the_homes_own(office: Bullpen, tmp_path: Path) -> None:
    for name, text in (("plan.txt", "a plan"), ("Bild ü.png", "an image")):
        (tmp_path / name).write_text(text)
    office.ok(
        *("send", "look", "--agent", "coder", "--no-wait"),
        *("--file", str(tmp_path / "plan.txt"), "--file", str(tmp_path / "Bild ü.png")),
    )
    with direct(office) as store:
        (row,) = rows(store, MESSAGES)
    plan, image = map(Path, json.loads(row["files"]))
    assert plan.parent == image.parent == office.home / "files"
    assert (plan.read_text(), image.read_text()) == ("a plan", "an image")
    assert plan.name.endswith("_plan.txt")
    assert stat.S_IMODE(plan.stat().st_mode) == 0o600
    office.ok("send", "--agent", "coder", "--no-wait", "--file", str(tmp_path / "plan.txt"))


def test_a_file_that_is_too_large_is_refused_and_nothing_stays(
    office: Bullpen, tmp_path: Path
) -> None:
    (tmp_path / "small").write_text("x")
    (tmp_path / "large").write_text("x" * 101)
    args = ("send", "look", "--no-wait", "--file", str(tmp_path / "small"))
    limit = {"BULLPEN_UPLOAD_BYTES": "100"}
    refused = office(*args, "--agent", "coder", "--file", str(tmp_path / "large"), **limit)
    assert refused.status == 2
    assert "large has more than 100 bytes" in refused.err
    assert office(*args, "--agent", "nobody", **limit).status == 1
    found = [each for each in (office.home / "files").rglob("*") if each.is_file()]
    assert found == []


def test_files_of_an_answer_are_named(office: Bullpen) -> None:
    with at_work(office) as store, sending(office, "@coder draw", "-q") as process:
        claim = claimed(store)
        done(store, claim.token, Outcome(answers=(Answer(message="", files=("/a/b.png",)),)))
        out, _ = process.communicate(timeout=60)
    assert out == "@coder: [file: /a/b.png]\n"


def test_a_reader_that_goes_away_ends_it_without_a_traceback(office: Bullpen) -> None:
    """As `| head -1` does."""
    with at_work(office) as store, sending(office, "[@coder: a] [@tester: b]") as process:
        done(store, claimed(store).token)
        assert line(process.stdout).endswith(": done\n")
        assert process.stdout is not None
        process.stdout.close()
        done(store, claimed(store).token)
        assert process.stderr is not None
        err = process.stderr.read()
        assert process.wait(60) == 1
    assert "Traceback" not in err
    assert "rror" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_without_a_terminal_leaves_and_says_the_id(
    office: Bullpen, number: signal.Signals
) -> None:
    with at_work(office) as store, sending(office, "@coder fix it") as process:
        claim = claimed(store)
        say(store, claim, "reading")
        line(process.stderr)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (75, "")
    assert f"bullpen queue cancel --conversation {claim.primary.message_id}" in err
    assert [each for each in (office.home / "run").iterdir() if each.suffix == ".sock"] == []
    with direct(office) as store:
        assert statuses(store) == {"processing": 1}


def test_what_nohup_ignores_is_ignored(office: Bullpen) -> None:
    with at_work(office) as store:
        process = subprocess.Popen(
            [*PROGRAM, "send", "@coder fix it"],
            env=office.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
        claim = claimed(store)
        say(store, claim, "reading")
        line(process.stderr)
        process.send_signal(signal.SIGHUP)
        done(store, claim.token)
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "@coder: done\n")


def test_an_agent_does_not_write_in_a_persons_name(office: Bullpen) -> None:
    refused = office("send", "@tester hello", "--no-wait", BULLPEN_AGENT="coder")
    assert refused.status == 1
    assert "@coder may not" in refused.err


def test_bytes_are_printed_as_they_are_whatever_the_locale(office: Bullpen) -> None:
    text = "ünï☃ \x1b[31mred"
    with at_work(office) as store:
        process = subprocess.Popen(
            [*PROGRAM, "send", "@coder say", "-q"],
            env=office.environment(
                LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii"
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        claim = claimed(store)
        done(store, claim.token, Outcome(answers=(Answer(message=text),)))
        out, _ = process.communicate(timeout=60)
    assert out.decode() == f"@coder: {text}\n"
    assert process.returncode == 0
