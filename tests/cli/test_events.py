"""bullpen events: what happened, and what happens, from the store itself."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from typing import Any

import pytest

from bullpen.core.events.base import Event
from bullpen.core.events.conversation import ChainStepDone, MessageEnqueued
from tests.answers.talk import answer, write
from tests.cli.command import PROGRAM, Bullpen
from tests.cli.open_store import company, direct
from tests.cli.terminal import CTRL_C, terminal

NOW = 1_790_000_000_000
SECONDS = 60.0
ARGS = ("events", "--follow", "--since-id", "0")


def talked(bullpen: Bullpen) -> str:
    """A conversation, long ago; gives its id."""
    company(bullpen)
    with direct(bullpen, NOW) as store:
        root = write(store, "@coder hello")
        answer(store, "coder", "done [@tester: look]")
    return root


def listed(bullpen: Bullpen, *args: str) -> list[Any]:
    """The document of a list."""
    found = bullpen.ok("events", *args, "--json").json
    assert isinstance(found, list)
    return found


class Follower:
    """A command that follows, and the lines that it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: Queue[str] = Queue()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def line(self) -> str:
        """The next line, when it is there."""
        return self._lines.get(timeout=SECONDS)

    def until(self, kind: type[Event]) -> Any:  # noqa: ANN401 - the document of an event
        """The next event of this type; those before it are over."""
        while (found := json.loads(self.line()))["type"] != kind.type:
            pass
        return found

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)


@contextmanager
def following(bullpen: Bullpen, *args: str) -> Iterator[Follower]:
    """`bullpen events --follow` with its output in a pipe."""
    with subprocess.Popen(
        [*PROGRAM, "events", "--follow", *args],
        env=bullpen.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        follower = Follower(process)
        try:
            yield follower
        finally:
            process.kill()
            follower.thread.join(SECONDS)


def test_the_last_ones_are_listed_the_newest_at_the_end(on_both: Bullpen) -> None:
    root = talked(on_both)
    every = listed(on_both, "--limit", "1000")
    assert [each["id"] for each in every] == sorted(each["id"] for each in every)
    assert listed(on_both, "--limit", "3") == every[-3:]
    lines = on_both.ok("events", "--limit", "3", BULLPEN_TIME_ZONE="Europe/Berlin").out.splitlines()
    assert len(lines) == 3
    for line, event in zip(lines, every[-3:], strict=True):
        assert re.match(rf" *{event['id']}  2026-09-21 16:13:20  {event['type']} ", line)
    assert {each["conversation_id"] for each in every} >= {root}


def test_filters_choose(on_both: Bullpen) -> None:
    root = talked(on_both)
    every = listed(on_both, "--limit", "1000")
    types = ("message_enqueued", "agent_added")
    found = listed(on_both, *(word for each in types for word in ("--type", each)))
    assert found == [each for each in every if each["type"] in types]
    assert {each["type"] for each in found} == set(types)
    assert listed(on_both, "--agent", "tester") == [
        each for each in every if each["agent"] == "tester"
    ]
    of_it = listed(on_both, "--conversation", root)
    assert of_it == [each for each in every if each["conversation_id"] == root]
    after = every[2]["id"]
    assert listed(on_both, "--since-id", str(after)) == every[3:23]
    assert "No events match" in on_both.ok("events", "--type", "message_dead").out
    assert listed(on_both, "--type", "message_dead") == []


def test_a_filter_for_what_does_not_exist_is_refused_with_a_suggestion(on_both: Bullpen) -> None:
    company(on_both)
    refused = on_both("events", "--agent", "codre")
    assert refused.status == 1
    assert "agent 'codre' does not exist. Did you mean 'coder'?" in refused.err
    refused = on_both("events", "--type", "mesage_dead")
    assert refused.status == 2
    said, hint = refused.err.splitlines()
    assert said == "Error: event type 'mesage_dead' does not exist. Did you mean 'message_dead'?"
    assert "bullpen events --list-types" in hint
    assert len(on_both.ok("events", "--help").out.splitlines()) < 50
    names = on_both.ok("events", "--list-types", "--json").json
    assert {"message_dead", "agent_added"} <= set(names)


def test_following_says_so_and_shows_the_last_events_first(bullpen: Bullpen) -> None:
    root = talked(bullpen)
    with direct(bullpen) as store, terminal(bullpen, "events", "-f", "--agent", "coder") as screen:
        before = screen.until("Following new events. Press Ctrl-C to stop.")
        assert root in before
        write(store, "@coder again")
        screen.until("message_enqueued")
        screen.type(CTRL_C)
        assert screen.end() == 0


def test_a_length_of_time_chooses(on_both: Bullpen) -> None:
    talked(on_both)
    with direct(on_both) as store:
        root = write(store, "@stranger now")
    again = listed(on_both, "--since", "2h", "--agent", "stranger", "--limit", "2")
    assert [each["conversation_id"] for each in again] == [root, root]
    assert {each["created_at"] > NOW for each in listed(on_both, "--since", "2h")} == {True}
    assert len(listed(on_both, "--since", "10000d")) > len(listed(on_both, "--since", "2h"))


@pytest.mark.parametrize(
    "args",
    [
        ("--type", "nonsense"),
        ("--since", "soon"),
        ("--since", "1h", "--since-id", "3"),
        ("--since-id", "-1"),
        ("--limit", "0"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_a_mistake_of_usage(
    bullpen: Bullpen, args: tuple[str, ...]
) -> None:
    result = bullpen("events", *args)
    assert (result.status, result.out) == (2, "")


def test_each_comes_as_it_happens_and_none_is_missed(on_both: Bullpen) -> None:
    talked(on_both)
    every = listed(on_both, "--limit", "1000")
    with following(on_both, "--json", "--since-id", str(every[1]["id"])) as follower:
        assert [json.loads(follower.line()) for _ in every[2:]] == every[2:]
        with direct(on_both) as store:
            root = write(store, "@stranger now")
            assert follower.until(MessageEnqueued)["conversation_id"] == root
            answer(store, "stranger", "yes")
            assert follower.until(ChainStepDone)["conversation_id"] == root


def test_what_is_followed_is_chosen_too(bullpen: Bullpen) -> None:
    talked(bullpen)
    last = listed(bullpen, "--limit", "1")
    args = ("--agent", "tester", "--type", "message_enqueued", "--limit", "1", "--json")
    with following(bullpen, *args) as follower:
        assert json.loads(follower.line())["agent"] == "tester"
        with direct(bullpen) as store:
            write(store, "@coder for somebody else")
            root = write(store, "@tester for this one")
        found = json.loads(follower.line())
        assert (found["conversation_id"], found["agent"]) == (root, "tester")
        assert found["id"] > last[0]["id"]


def test_ctrl_c_ends_it_in_silence(bullpen: Bullpen) -> None:
    talked(bullpen)
    with following(bullpen, "--since-id", "0") as follower:
        follower.line()
        follower.process.send_signal(signal.SIGINT)
        assert follower.process.wait(SECONDS) == 0
        assert follower.process.stderr is not None
        assert follower.process.stderr.read() == ""


@pytest.mark.parametrize("args", [("--since-id", "0"), ("--limit", "1")])
def test_a_pipe_that_nobody_reads_any_more_ends_it(bullpen: Bullpen, args: tuple[str, ...]) -> None:
    """Also if nothing happens that it could fail to write."""
    talked(bullpen)
    with subprocess.Popen(
        [*PROGRAM, "events", "--follow", *args],
        env=bullpen.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(SECONDS) == 0
        assert process.stderr.read() == ""


def test_at_a_terminal_each_has_one_line(bullpen: Bullpen) -> None:
    company(bullpen)
    with direct(bullpen) as store, terminal(bullpen, *ARGS) as screen:
        write(store, "@coder a long\n\x1b[2J text " + "word " * 50)
        screen.until("message_enqueued")
        screen.until("agent_routed")
        screen.type(CTRL_C)
        assert screen.end() == 0
    assert "\x1b[2J" not in screen.raw
    shown = [line for line in screen.shown.splitlines() if line.strip(" ^C")]
    assert any(line.startswith("Following new events.") for line in shown)
    shown = [line for line in shown if not line.startswith("Following")]
    assert max(len(line) for line in shown) <= 80
    assert all(re.match(r" *\d+  \d", line) for line in shown)


def test_in_its_run_an_agent_sees_no_events(bullpen: Bullpen) -> None:
    talked(bullpen)
    refused = bullpen("events", BULLPEN_RUN="tester.0")
    assert (refused.status, refused.out) == (1, "")
    assert "@tester may not" in refused.err
