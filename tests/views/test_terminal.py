"""The views in a real terminal, from the command line to the shell that comes after."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.cli.command import PROGRAM
from tests.cli.resting import comes_to_rest
from tests.processor.working import environ
from tests.views.test_room import said, say
from tests.views.test_watch import team_of
from tests.views.tmux import is_as_before, pane, there_is_tmux

pytestmark = pytest.mark.skipif(not there_is_tmux(), reason="there is no tmux on this machine")

SIZES = [(80, 24), (200, 50)]
WATCH, ROOM = (*PROGRAM, "team", "watch", "dev"), (*PROGRAM, "room", "dev")
IDLE_SECONDS = 3.0
IDLE_SHARE = 0.02

BROKEN = """
from bullpen.cli.main import main
from bullpen.cli.views.company import WatchView
def broken(self):
    secret = "hidden" + "word"
    raise ZeroDivisionError("this is broken on purpose")
WatchView.action_help = broken
main()
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """A place whose path is short enough for a socket."""
    made = Path(tempfile.mkdtemp(prefix="bp-view-", dir="/tmp"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(autouse=True)
def team(store: Store) -> None:
    """Two agents in a team."""
    team_of(store, "coder", "reviewer")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_person_enters_a_room_talks_and_leaves_everything_clean(
    store: Store, settings: Settings, directory: Path, size: tuple[int, int]
) -> None:
    say(store, "said before")
    with pane(directory, ROOM, environ(settings), size) as seen:
        seen.sees("Beginning of the room", "said before", "Post to #dev")
        seen.types("quite so ✓ über")
        seen.press("Enter")
        seen.sees("you       quite so ✓ über")
        seen.paste("two\nlines")
        seen.press("Enter")
        seen.sees("you       two")
        say(store, "said by another")
        seen.sees("said by another")
        assert said(store) == ["said before", "quite so ✓ über", "two\nlines", "said by another"]
        seen.types("a draft")
        seen.press("Escape")
        seen.sees("ended with 0", "it is over")
        assert is_as_before(directory, seen)


@pytest.mark.parametrize(
    ("kind", "size"),
    [("sqlite", SIZES[0]), pytest.param("postgresql", SIZES[1], marks=pytest.mark.postgres)],
)
def test_a_person_watches_agents_and_leaves_everything_clean(
    store: Store, settings: Settings, directory: Path, size: tuple[int, int]
) -> None:
    with pane(directory, WATCH, environ(settings), size) as seen:
        seen.sees("#dev The Devs", "coder ★", "MESSAGES AND ANSWERS", "q Quit")
        seen.press("Down")
        seen.types("p")
        seen.sees("■ paused")
        seen.resize(40, 10)
        seen.sees("reviewer", "■ paused")
        seen.resize(*size)
        seen.sees("MESSAGES AND ANSWERS")
        seen.press("q")
        seen.sees("ended with 0", "it is over")
        assert is_as_before(directory, seen)


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize("program", [WATCH, ROOM], ids=["watch", "room"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, "C-c"], ids=str)
def test_however_it_ends_the_terminal_is_left_clean(
    settings: Settings,
    directory: Path,
    program: tuple[str, ...],
    how: signal.Signals | str,
) -> None:
    with pane(directory, program, environ(settings), (80, 24)) as seen:
        seen.sees("#dev", "The Devs", "coder")
        if isinstance(how, signal.Signals):
            os.kill(seen.program("dev").pid, how)
            seen.sees(f"ended with {128 + how}", "it is over")
        else:
            seen.press(how)
            seen.sees("ended with 0", "it is over")
        assert is_as_before(directory, seen)
        assert list(settings.sockets.glob("wake-*")) == []


@pytest.mark.parametrize("kind", ["sqlite"])
def test_an_error_of_ours_leaves_the_terminal_clean_and_shows_no_values(
    settings: Settings, directory: Path
) -> None:
    program = (PROGRAM[0], "-c", BROKEN, "team", "watch", "dev")
    with pane(directory, program, environ(settings), (100, 50)) as seen:
        seen.sees("coder")
        seen.press("?")
        shown = seen.sees("this is broken on purpose", "ended with 1", "it is over")
        assert "hiddenword" not in shown
        assert is_as_before(directory, seen)


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize("term", ["screen", "xterm-256color", "vt100"])
def test_without_colours_none_are_shown_and_all_can_be_read(
    settings: Settings, directory: Path, term: str
) -> None:
    plain = environ(settings, NO_COLOR="1")
    with pane(directory, WATCH, plain, (80, 24), term) as seen:
        seen.sees("coder ★", "○ idle", "q Quit")
        colours = re.findall(r"\x1b\[[0-9;]*m", seen.coloured)
        assert not [each for each in colours if re.search(r"[;\[](3[0-8]|4[0-8]|9\d|10\d)\b", each)]
        assert any("7" in each for each in colours), "the chosen agent is told by its reverse"


def test_a_view_that_has_nothing_to_show_costs_next_to_nothing(
    settings: Settings, directory: Path
) -> None:
    with pane(directory, WATCH, environ(settings), (80, 24)) as seen:
        seen.sees("coder ★", "○ idle")
        comes_to_rest(seen.program("dev"), IDLE_SHARE, IDLE_SECONDS)
