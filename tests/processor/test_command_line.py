"""A command line as a provider: what a program is started with, and what is made of its output."""

from __future__ import annotations

import json
import os
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.errors import UnknownProvider
from bullpen.core.message import ErrorKind, Failure
from bullpen.core.roster.agents import Permission
from bullpen.core.roster.providers import BUILT_IN_PROVIDERS, Harness
from bullpen.core.roster.sessions import Session
from bullpen.core.settings import Settings
from bullpen.processor.children.child import Launcher
from bullpen.processor.providers.base import Reply, RunRequest
from bullpen.processor.providers.claude import Claude, ClaudeReader
from bullpen.processor.providers.command_line import MAX_OUTPUT_BYTES, CliProvider
from bullpen.processor.providers.echo import Echo
from bullpen.processor.providers.registry import Providers
from tests.processor.turns import (
    ANSWERS,
    CLAUDE,
    PROVIDERS,
    Place,
    agent,
    custom,
    ignore,
    launching,
    living,
    mark,
    reply,
)
from tests.processor.working import SOON, eventually

GONE = "No conversation found with session ID: s0"
UNKNOWN = json.dumps({"type": "result", "is_error": True, "session_id": "s0", "errors": [GONE]})


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    """One fork server for all."""
    with launching() as made:
        yield made


@pytest.fixture
def place(tmp_path: Path, launcher: Launcher) -> Iterator[Place]:
    """A scratch directory."""
    with Place(tmp_path, launcher) as made:
        yield made


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_program_is_asked_and_answers(place: Place, name: str) -> None:
    place.prints(name, *ANSWERS[name], errors="WARNING: something harmless\n")
    found = reply(place, PROVIDERS[name])
    assert found.text == "Hello!"
    assert found.session is not None
    assert found.session.id == "s1"
    assert place.stdin == b"hello"


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize(
    "prompt",
    [
        *("-rf is what I typed", "--help", "/cost", "@/etc/hostname", "!touch it", "$HOME `id`"),
        *("one\r\ntwo\n\n", "é ☃ 🐑", "x" * 300_000),
    ],
)
def test_a_prompt_is_read_word_for_word_and_never_an_argument(
    place: Place, name: str, prompt: str
) -> None:
    place.prints(name, *ANSWERS[name])
    assert isinstance(place.run(PROVIDERS[name], place.turn(prompt=prompt)), Reply)
    assert place.stdin.decode().removeprefix("\n") == prompt
    assert not any(prompt in each for each in place.argv)


@pytest.mark.parametrize("name", PROVIDERS)
def test_other_users_of_the_machine_read_no_instructions(place: Place, name: str) -> None:
    """Arguments can be read by everybody, as with `ps`; files of a private directory cannot."""
    said = "\n".join(("find $here -type f | xargs stat -c '%a %n' > $here/files", "true"))
    place.prints(name, *ANSWERS[name], before=said)
    secret = "The password of the sheep."
    assert isinstance(place.run(PROVIDERS[name], place.turn(system=secret, prompt="Baa?")), Reply)
    assert not any(each in " ".join(place.argv) for each in (secret, "Baa?"))
    files = [each.split(" ", 1) for each in place.path_lines("files")]
    told = [(mode, Path(path)) for mode, path in files if "coder" in Path(path).name]
    assert told
    for mode, path in told:
        assert mode == "600" or path.parent.stat().st_mode & 0o077 == 0, path


def test_what_no_program_can_read_is_replaced(place: Place) -> None:
    place.prints("claude", *ANSWERS["claude"])
    asked = place.turn(prompt="a\0b\ud800", system="a\0b\ud800")
    assert isinstance(place.run(CLAUDE, asked), Reply)
    assert place.stdin.decode() == "a�b?"


def test_it_works_in_the_agents_directory_and_reads_its_prompt_from_a_file(place: Place) -> None:
    place.prints("claude", *ANSWERS["claude"])
    elsewhere = place.path / "repository"
    elsewhere.mkdir()
    assert isinstance(place.run(CLAUDE, place.turn(directory=elsewhere, system="Baa.")), Reply)
    assert place.seen["PWD"] == str(elsewhere)
    file = Path(place.argv[place.argv.index("--append-system-prompt-file") + 1])
    assert file.read_text() == "Baa."
    assert file.parent.stat().st_mode & 0o077 == 0


def test_a_relative_home_is_the_same_to_the_program(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.path)
    place.settings = replace(place.settings, home=Path("home"))
    place.prints("claude", *ANSWERS["claude"])
    assert reply(place, CLAUDE).text == "Hello!"
    assert place.seen["BULLPEN_HOME"] == str(place.path / "home")
    assert Path(place.argv[place.argv.index("--append-system-prompt-file") + 1]).is_absolute()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root must say it")
def test_root_says_that_everything_is_permitted_on_purpose(place: Place) -> None:
    place.prints("claude", *ANSWERS["claude"])
    for permission in Permission:
        assert isinstance(place.run(CLAUDE, place.turn(agent(permission=permission))), Reply)
        assert ("IS_SANDBOX" in place.seen) is (permission is Permission.FULL)


def test_a_session_that_is_gone_is_begun_anew_and_that_is_told(place: Place) -> None:
    (place.path / "gone").write_text(f"{UNKNOWN}\n")
    gone = 'case "$*" in *--resume*) cat $here/gone; exit 1;; esac'
    place.prints("claude", *ANSWERS["claude"], before=gone)
    found = reply(place, CLAUDE, session=Session(id="s0", input_tokens=7))
    assert found.text == "Hello!"
    assert found.session == Session(id="s1")
    assert found.session_lost == GONE
    assert place.runs == 2
    assert "--session-id" in place.argv


def test_a_session_that_stays_lost_is_a_failure_and_no_loop(place: Place) -> None:
    class AlwaysResumes(Claude):
        def reader(self, turn: RunRequest) -> ClaudeReader:
            return super().reader(replace(turn, session=Session(id="s0")))

    place.prints("claude", UNKNOWN, code=1)
    knows = AlwaysResumes(Settings())
    kind, error = place.fails(knows, place.turn(session=Session(id="s0")))
    assert kind is ErrorKind.RETRYABLE
    assert GONE in error
    assert place.runs == 2


def test_a_session_that_is_still_there_is_not_told_as_lost(place: Place) -> None:
    place.prints("claude", *ANSWERS["claude"])
    assert reply(place, CLAUDE, session=Session(id="s1")).session_lost is None
    assert place.runs == 1


def test_bytes_that_are_no_text_break_nothing(place: Place) -> None:
    noise = b'\xff\xfe\0\n{"type":"\xc3\x28"}\n\0\0\n'
    (place.path / "noise").write_bytes(noise)
    noisily = "cat $here/noise; cat $here/noise >&2"
    place.prints("claude", *ANSWERS["claude"], before=noisily, after=noisily)
    assert reply(place, CLAUDE).text == "Hello!"


def test_a_line_of_700_kb_is_an_answer(place: Place) -> None:
    long = "baa " * 175_000
    block = {"type": "assistant", "message": {"content": [{"type": "text", "text": long}]}}
    place.prints("claude", json.dumps(block), ANSWERS["claude"][-1])
    assert reply(place, CLAUDE).text == long


def test_a_last_line_that_nothing_ends_is_read(place: Place) -> None:
    place.prints("claude", *ANSWERS["claude"])
    out = place.path / "out"
    out.write_text(out.read_text().removesuffix("\n"))
    assert reply(place, CLAUDE).text == "Hello!"


def test_what_it_says_is_told_while_it_runs(place: Place) -> None:
    go = place.path / "go"
    until_told = f"while [ ! -e {go} ]; do sleep 0.01; done"
    place.prints("claude", *ANSWERS["claude"], after=until_told)
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        go.touch()

    line = CliProvider(CLAUDE, place.launcher, place.settings, place.environ)
    assert isinstance(line.run(place.turn(), place.stop, tell), Reply)
    assert told == ["Hello!"]


FLOOD = """
import json, sys
kind, count = sys.argv[1], int(sys.argv[2])
tool = {"type": "user", "message": {"content": "x" * 100_000}}
text = {"type": "assistant", "message": {"content": [{"type": "text", "text": "x" * 100_000}]}}
line = json.dumps(tool if kind == "tool" else text) + "\\n"
for _ in range(count):
    sys.stdout.write(line)
"""


def flood(place: Place, kind: str, count: int, *last: str) -> None:
    """Let claude print so many lines of 100 KB before the last ones."""
    (place.path / "flood.py").write_text(FLOOD)
    before = f"{sys.executable} -S $here/flood.py {kind} {count} || exit 9"
    place.prints("claude", *last, before=before)


def overflow(place: Place) -> Path:
    """Where the rest of the output is."""
    return place.settings.home / "logs" / "output_coder.log"


def test_an_answer_after_ever_so_much_output_is_an_answer_in_bounded_memory(place: Place) -> None:
    flood(place, "tool", 600, *ANSWERS["claude"])
    tracemalloc.start()
    found = reply(place, CLAUDE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.text == "Hello!"
    assert peak < 3 * MAX_OUTPUT_BYTES
    rest = overflow(place).read_text()
    assert rest.endswith("".join(f"{line}\n" for line in ANSWERS["claude"]))
    assert 60_000_000 - MAX_OUTPUT_BYTES < len(rest) < 60_100_000


def test_an_answer_that_never_ends_is_a_failure_that_says_where_the_rest_is(place: Place) -> None:
    flood(place, "text", 400, *ANSWERS["claude"])
    tracemalloc.start()
    kind, error = place.fails(CLAUDE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kind is ErrorKind.PERMANENT
    assert f"all of it is in {overflow(place)}" in error
    assert peak < 4 * MAX_OUTPUT_BYTES


def test_a_failure_after_much_output_says_where_the_rest_is(place: Place) -> None:
    flood(place, "tool", 100)
    kind, error = place.fails(CLAUDE)
    assert kind is ErrorKind.RETRYABLE
    assert f"all of it is in {overflow(place)}" in error


def test_a_long_complaint_is_kept_in_part(place: Place) -> None:
    place.prints("claude", errors="x" * 5_000_000 + " the end", code=1)
    _, error = place.fails(CLAUDE)
    assert error.endswith("the end")
    assert len(error) < 5000


def test_a_run_that_is_stopped_has_no_result_and_leaves_nothing(place: Place) -> None:
    word = mark()
    place.environ["XDG_MARK"] = word
    place.program("claude", "setsid sleep 1000 & sleep 1000")
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(place.run(CLAUDE)))
    thread.start()
    eventually(lambda: len(living(word)) == 3, "it runs")
    place.stop.set()
    thread.join(SOON)
    assert found == [None]
    assert living(word) == []


def test_a_run_that_was_lost_is_not_begun_anew_after_a_stop(place: Place) -> None:
    go = place.path / "go"
    place.prints("claude", UNKNOWN, after=f"touch {go}; sleep 1000", code=1)
    found: list[object] = []
    asked = place.turn(session=Session(id="s0"))
    thread = threading.Thread(target=lambda: found.append(place.run(CLAUDE, asked)))
    thread.start()
    eventually(go.exists, "it runs")
    place.stop.set()
    thread.join(SOON)
    assert found == [None]
    assert place.runs == 1


def test_an_answer_that_was_there_before_the_stop_is_an_answer(place: Place) -> None:
    place.prints("claude", *ANSWERS["claude"], before="echo $PPID > $here/keeper")

    def tell(text: str) -> None:
        keeper = Path("/proc", (place.path / "keeper").read_text().strip())
        eventually(lambda: not keeper.exists(), "it has ended")
        place.stop.set()

    line = CliProvider(CLAUDE, place.launcher, place.settings, place.environ)
    assert isinstance(line.run(place.turn(), place.stop, tell), Reply)


def test_a_run_whose_watcher_breaks_is_ended(place: Place) -> None:
    word = mark()
    place.environ["XDG_MARK"] = word
    place.prints("claude", *ANSWERS["claude"], after="sleep 1000")

    def tell(text: str) -> None:
        raise ZeroDivisionError

    line = CliProvider(CLAUDE, place.launcher, place.settings, place.environ)
    with pytest.raises(ZeroDivisionError):
        line.run(place.turn(), place.stop, tell)
    eventually(lambda: not living(word), "it is ended")


def test_a_second_run_finds_nothing_of_the_first(place: Place) -> None:
    place.prints("claude", *ANSWERS["claude"])
    assert reply(place, CLAUDE).text == "Hello!"
    place.prints("claude", "x", code=1)
    assert isinstance(place.run(CLAUDE), Failure)
    place.prints("claude", *ANSWERS["claude"])
    assert reply(place, CLAUDE).text == "Hello!"


def test_each_provider_is_found_by_its_name_and_made_once(place: Place) -> None:
    providers = Providers(place.settings, place.launcher)
    found = {name: providers.get(name) for name in BUILT_IN_PROVIDERS}
    assert found == {name: providers.get(name) for name in BUILT_IN_PROVIDERS}
    assert isinstance(found["echo"], Echo)
    assert found["http"].run(place.turn(), place.stop, ignore) is None
    for harness in Harness:
        assert providers.get("custom:other", custom(harness)) is found[harness]


@pytest.mark.parametrize("name", ["custom:other", "nonesuch"])
def test_a_provider_that_is_unknown_is_named(place: Place, name: str) -> None:
    with pytest.raises(UnknownProvider, match=name):
        Providers(place.settings, place.launcher).get(name)


def test_a_provider_may_come_from_another_package(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.path / "plug-1.dist-info").mkdir()
    points = "[bullpen.providers]\nplug = bullpen_test_plug:Plug\n"
    (place.path / "plug-1.dist-info" / "entry_points.txt").write_text(points)
    (place.path / "plug-1.dist-info" / "METADATA").write_text("Name: plug\nVersion: 1\n")
    plug = "class Plug:\n    def __init__(self, *given):\n        self.given = given\n"
    (place.path / "bullpen_test_plug.py").write_text(plug)
    monkeypatch.syspath_prepend(place.path)
    found = Providers(place.settings, place.launcher).get("plug")
    assert vars(found)["given"] == (place.settings, place.launcher)
