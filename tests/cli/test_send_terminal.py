"""bullpen send as a person at a terminal sees it, and stops it."""

from __future__ import annotations

import subprocess

import pytest

from bullpen.core.message import Answer, Outcome
from tests.cli.command import Bullpen
from tests.cli.open_store import company, direct
from tests.cli.processor import processor
from tests.cli.sending import at_work, claimed, say
from tests.cli.terminal import COLUMNS, CTRL_C, CTRL_D, terminal
from tests.conformance.verbs import done, statuses
from tests.processor.working import eventually

QUESTION = "keep waiting? [stop/leave/wait]"


@pytest.fixture
def office(bullpen: Bullpen) -> Bullpen:
    """Three agents, two of them in the team dev."""
    return company(bullpen)


def test_one_line_says_what_is_done_and_goes_when_the_answer_is_there(office: Bullpen) -> None:
    with at_work(office) as store, terminal(office, "send", "@coder fix it") as person:
        person.until("waiting for @coder")
        claim = claimed(store)
        person.until("@coder is working, ")
        say(store, claim, "reading ☃ " + "and reading " * 20)
        person.until(": reading ☃ and reading")
        done(store, claim.token)
        person.until("@coder: done")
        assert person.end() == 0
    lived = [each for each in person.shown.split("\n") if "is working" in each]
    assert len(lived) == 1  # it is written over, and never broken
    assert all(len(each) < COLUMNS for each in lived[0].split("\r"))
    assert person.raw.rpartition("\x1b[2K")[2].lstrip("\r").startswith("\x1b[1m@coder\x1b[0m: done")
    assert "\x1b[2m" in person.raw


def test_without_colours_nothing_is_coloured(office: Bullpen) -> None:
    with at_work(office) as store, terminal(office, "send", "@coder fix", NO_COLOR="1") as person:
        claim = claimed(store)
        person.until("@coder is working")
        done(store, claim.token)
        assert person.end() == 0
    assert "m@coder" not in person.raw
    assert "\x1b[2K" in person.raw


def test_a_dumb_terminal_gets_lines(office: Bullpen) -> None:
    with at_work(office) as store, terminal(office, "send", "@coder fix it", TERM="dumb") as person:
        claim = claimed(store)
        say(store, claim, "reading")
        person.until("@coder is working: reading\n")
        done(store, claim.token)
        assert person.end() == 0
    assert "\x1b[2K" not in person.raw


def test_no_answer_moves_the_cursor_or_sets_a_title(office: Bullpen) -> None:
    with at_work(office) as store, terminal(office, "send", "@coder fix it") as person:
        claim = claimed(store)
        text = "\x1b]0;owned\x07\x1b[2J\rred \x1b[31mred\x1b[0m \u202egnp.exe\nnext"
        say(store, claim, text)
        done(store, claim.token, Outcome(answers=(Answer(message=text),)))
        person.until("next")
        assert person.end() == 0
    answer = person.raw[person.raw.index("\x1b[1m@coder\x1b[0m: ") :]
    assert "\x1b]" not in answer
    assert "\x1b[2J" not in answer
    assert "\x07" not in answer
    assert "\u202e" not in answer
    assert "red" in answer


def test_standard_output_alone_may_be_a_pipe(office: Bullpen) -> None:
    with (
        at_work(office) as store,
        terminal(office, "send", "@coder fix it", stdout=subprocess.PIPE) as person,
    ):
        claim = claimed(store)
        person.until("@coder is working")
        done(store, claim.token)
        assert person.end() == 0
        assert person.process.stdout is not None
        assert person.process.stdout.read() == b"@coder: done\n"
        person.process.stdout.close()


def test_ctrl_c_asks_and_stop_ends_the_run(office: Bullpen) -> None:
    with at_work(office) as store, terminal(office, "send", "@coder fix it") as person:
        claimed(store)
        person.until("@coder is working")
        person.type(CTRL_C)
        person.until(QUESTION)
        person.type("s\n")
        person.until("Cancelled cli_")
        assert person.end() == 1
        assert statuses(store) == {"cancelled": 1}


@pytest.mark.parametrize("keys", ["leave\n", CTRL_C, CTRL_D, "l\n"], ids=ascii)
def test_ctrl_c_and_then_leave_keeps_it_working(office: Bullpen, keys: str) -> None:
    """A second Ctrl-C, or the end of input, leaves as well."""
    with at_work(office) as store, terminal(office, "send", "@coder fix it") as person:
        claim = claimed(store)
        person.until("@coder is working")
        person.type(CTRL_C)
        person.until(QUESTION)
        person.press(keys)
        person.until(f"bullpen queue cancel --conversation {claim.primary.message_id}")
        assert person.end() == 75
        assert statuses(store) == {"processing": 1}


def test_ctrl_c_and_then_wait_goes_on(office: Bullpen) -> None:
    with at_work(office) as store, terminal(office, "send", "@coder fix it") as person:
        claim = claimed(store)
        person.until("@coder is working")
        person.type(CTRL_C)
        person.until(QUESTION)
        person.type("what?\n")
        person.until(QUESTION)
        person.type("w\n")
        person.until("@coder is working")
        person.type(CTRL_C)
        person.until(QUESTION)
        done(store, claim.token)
        person.type("w\n")
        person.until("@coder: done")
        assert person.end() == 0


def test_without_a_processor_a_person_may_start_one_meanwhile(office: Bullpen) -> None:
    with terminal(office, "send", "@coder hello") as person:
        person.until("In another terminal: bullpen up")
        with processor(office):
            person.until("@coder: hello")
            assert person.end() == 0


def test_a_message_can_be_typed(office: Bullpen) -> None:
    with terminal(office, "send", "--agent", "coder", "--no-wait") as person:
        person.until("Ctrl-D")
        person.type(f"hello\n{CTRL_D}")
        person.until("cli_")
        assert person.end() == 0
    with direct(office) as store:
        eventually(lambda: statuses(store) == {"pending": 1}, "it is there")
