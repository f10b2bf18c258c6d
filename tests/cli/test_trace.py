"""bullpen trace: a conversation as a tree, found by any of its messages."""

from __future__ import annotations

import re
import subprocess

import pytest

from bullpen.core.clock import SECOND
from bullpen.core.message import Usage
from bullpen.core.queue.manage import hold
from tests.answers.talk import answer, write
from tests.cli.command import PROGRAM, Bullpen
from tests.cli.open_store import company, direct
from tests.cli.terminal import CTRL_C, terminal
from tests.conformance.verbs import do, failed, take, to_archive
from tests.stores import FakeClock

NOW = 1_790_000_000_000
LONG = "word " * 100


def talked(bullpen: Bullpen) -> tuple[str, str]:
    """A conversation that is not over; gives its id and that of its last message."""
    company(bullpen)
    with direct(bullpen, NOW) as store:
        clock = store.clock
        assert isinstance(clock, FakeClock)
        root = write(store, f"@coder {LONG}")
        clock.advance(2 * SECOND)
        failed(store, take(store, "coder").token, error="it broke", retry_after=0)
        clock.advance(SECOND)
        used = Usage(input_tokens=1200, output_tokens=30, cost=0.125)
        answer(store, "coder", "done [@tester: look] [@stranger: and you]", usage=used)
        answer(store, "tester", "fine\nreally")
        (last,) = (each.message_id for each in take(store, "stranger").messages)
    return root, last


def test_it_is_a_tree_with_all_that_happened(on_both: Bullpen) -> None:
    root, last = talked(on_both)
    shown = on_both.ok("trace", last, BULLPEN_TIME_ZONE="Europe/Berlin").out
    assert shown == on_both.ok("trace", root, BULLPEN_TIME_ZONE="Europe/Berlin").out
    lines = shown.splitlines()
    assert lines[0].startswith(f"{root}: in progress, started 2026-09-21 16:13:20 CEST")
    assert lines[1] == "├── Ada (slack) → @coder: completed"
    assert "│   ├── @coder → @tester: completed" in lines
    assert "│   └── @coder → @stranger: processing" in lines
    assert re.search(r"run 1 at 16:13:22: failed after 0\.0 s: it broke \(retryable\)", shown)
    assert re.search(r"run 2 at 16:13:23: completed.*\$0\.1250, 1200 tokens in, 30 out", shown)
    assert "@coder → Ada on slack: pending" in shown
    assert f"{root}  sent 16:13:20, waited 3.0 s" in shown
    assert re.search(r"processing for .* by worker-1", shown)
    assert lines[-1].startswith("└── 3 messages, 3 runs, ")
    assert "$0.1250" in lines[-1]
    assert LONG.strip() not in shown
    assert "…" in shown


def test_whole_texts_are_shown_when_asked_for(bullpen: Bullpen) -> None:
    root, _ = talked(bullpen)
    shown = bullpen.ok("trace", root, "--full").out
    assert LONG.strip() in shown
    lines = [line.lstrip("│ ") for line in shown.splitlines()]
    assert lines.index("really") == lines.index("fine") + 1


def test_programs_get_one_document(on_both: Bullpen) -> None:
    root, last = talked(on_both)
    found = on_both.ok("trace", last, "--json").json
    assert (found["conversation_id"], found["state"]) == (root, "under_way")
    assert [each["status"] for each in found["messages"]] == [
        "completed",
        "completed",
        "processing",
    ]
    assert {each["parent_id"] for each in found["messages"]} == {None, root}
    assert found["under_way"] == [last]
    assert [each["outcome"] for each in found["attempts"]] == ["failed", "completed", "completed"]
    assert found["totals"] == {
        **{"messages": 3, "attempts": 3, "cost": 0.125},
        **{"input_tokens": 1200, "output_tokens": 30},
    }
    assert [each["message"].splitlines()[0] for each in found["responses"]][-1] == "fine"
    assert found["messages"][0]["files"] == []


def test_what_is_archived_is_in_it(bullpen: Bullpen) -> None:
    root, _ = talked(bullpen)
    with direct(bullpen) as store:
        to_archive(store, root)
    shown = bullpen.ok("trace", root).out
    assert "├── Ada (slack) → @coder: completed" in shown
    assert "archived" in shown
    assert "│   └── @coder → @stranger: processing" in shown


def test_what_waits_for_a_person_says_what_helps(bullpen: Bullpen) -> None:
    company(bullpen)
    with direct(bullpen) as store:
        held, dead = write(store, "@coder one"), write(store, "@tester two")
        do(store, hold, held, "the limit is reached")
        for _ in range(5):
            failed(store, take(store, "tester").token, retry_after=0)
    shown = bullpen.ok("trace", held).out
    assert f"the limit is reached. Next: bullpen queue resume {held}" in shown
    assert f"Next: bullpen queue retry {dead}" in bullpen.ok("trace", dead).out


def test_a_stream_that_shows_no_lines_gets_others(bullpen: Bullpen) -> None:
    root, _ = talked(bullpen)
    done = subprocess.run(
        [*PROGRAM, "trace", root],
        env=bullpen.environment(PYTHONIOENCODING="ascii"),
        capture_output=True,
        check=True,
    )
    shown = done.stdout.decode("ascii")
    assert "+-- Ada (slack) -> @coder: completed" in shown
    assert "`-- 3 messages" in shown


def test_no_control_character_reaches_the_terminal(bullpen: Bullpen) -> None:
    company(bullpen)
    with direct(bullpen) as store:
        root = write(store, "@coder \x1b[2Jboo", sender="\x1b]0;x\x07Eve")
    for args in ((), ("--full",)):
        shown = bullpen.ok("trace", root, *args).out
        assert "boo" in shown
        assert "\x1b" not in shown
        assert "\x07" not in shown


@pytest.mark.parametrize("columns", [80, 200])
def test_a_terminal_gets_no_line_that_is_longer_than_it(bullpen: Bullpen, columns: int) -> None:
    root, _ = talked(bullpen)
    with terminal(bullpen, "trace", root, COLUMNS=str(columns)) as screen:
        assert screen.end() == 0
    assert "\x1b[" in screen.raw
    lines = screen.shown.splitlines()
    assert columns / 2 < max(len(line) for line in lines) <= columns
    assert any("@coder → @stranger: processing" in line for line in lines)


def test_no_color_is_heeded(bullpen: Bullpen) -> None:
    root, _ = talked(bullpen)
    with terminal(bullpen, "trace", root, NO_COLOR="1") as screen:
        assert screen.end() == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", screen.raw)


@pytest.mark.parametrize("args", [("--json",), ()])
def test_it_is_followed_until_nothing_moves(bullpen: Bullpen, args: tuple[str, ...]) -> None:
    company(bullpen)
    with direct(bullpen) as store:
        root = write(store, "@stranger hello")
        process = subprocess.Popen(
            [*PROGRAM, "trace", root, "--follow", *args],
            env=bullpen.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        answer(store, "stranger", "over")
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "at_rest" in out or "finished, started" in out
    assert "over" in out
    assert out.count(f"{root}: finished") == (0 if args else 1)


def test_a_person_sees_it_move_and_may_leave(bullpen: Bullpen) -> None:
    company(bullpen)
    with direct(bullpen) as store:
        root = write(store, "@stranger hello")
        with terminal(bullpen, "trace", root, "-f") as screen:
            screen.until("@stranger: pending")
            claim = take(store, "stranger")
            screen.until("@stranger: processing")
            screen.type(CTRL_C)
            assert screen.end() == 0
            assert "Traceback" not in screen.shown
    assert claim.messages[0].message_id == root


def test_an_id_that_is_not_there_is_said_so(on_both: Bullpen) -> None:
    result = on_both("trace", "cli_nothing")
    assert (result.status, result.out) == (1, "")
    assert "message or conversation 'cli_nothing' does not exist" in result.err
    assert on_both("trace", "cli_nothing", "--json").json["code"] == "not_found"


def test_in_its_run_an_agent_sees_no_trace(bullpen: Bullpen) -> None:
    company(bullpen)
    with direct(bullpen) as store:
        root = write(store, "@coder hello")
    refused = bullpen("trace", root, BULLPEN_RUN="coder.0")
    assert (refused.status, refused.out) == (1, "")
    assert "@coder may not" in refused.err


def test_a_run_without_a_provider_names_none(bullpen: Bullpen) -> None:
    """The record of a run has no provider if the provider's program was missing."""
    company(bullpen)
    with direct(bullpen) as store:
        root = write(store, "@coder one")
        failed(store, take(store, "coder").token, error="claude is not installed")
    shown = bullpen.ok("trace", root).out
    assert "nobody" not in shown
    assert re.search(r"run 1 at \d\d:\d\d:\d\d: failed after .*: claude is not installed", shown)
