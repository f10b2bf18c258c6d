"""Children: started whole, watched, and ended with everything that they have started."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.processor.children.child import ChildExit, ExitReason, Stop
from tests.processor.running import (
    LIMITS,
    MEMBERS,
    Running,
    family,
    go,
    processor,
    run,
    sh,
)
from tests.processor.turns import (
    PATIENCE,
    Place,
    at_most,
    kill,
    living,
    mark,
    open_files,
    parent,
)
from tests.processor.working import SOON, eventually


def end_normally(place: Place, _: Running) -> None:
    go(place)


def stop(place: Place, _: Running) -> None:
    place.stop.set()


def stop_at_once(place: Place, _: Running) -> None:
    place.stop.set(at_once=True)


def kill_keeper(_: Place, running: Running) -> None:
    kill([parent(running.pid)])


def kill_fork_server(_: Place, running: Running) -> None:
    kill([parent(parent(running.pid))])


def kill_child(_: Place, running: Running) -> None:
    kill([running.pid])


EXIT = ExitReason.EXITED
ENDS: dict[str, tuple[Callable[[Place, Running], None], str, ChildExit]] = {
    "a normal end": (end_normally, "", ChildExit(EXIT, 0)),
    "an end with an error": (end_normally, "exit 7", ChildExit(EXIT, 7)),
    "a signal of its own": (end_normally, "kill -KILL $$", ChildExit(EXIT, -9)),
    "somebody who kills it": (kill_child, "", ChildExit(EXIT, -9)),
    "a stop": (stop, "", ChildExit(EXIT, -9)),
    "a stop at once": (stop_at_once, "", ChildExit(EXIT, -9)),
    "the end of its keeper": (kill_keeper, "", ChildExit(ExitReason.LOST)),
    "the end of the fork server": (kill_fork_server, "", ChildExit(EXIT, -9)),
}


@pytest.mark.parametrize("what", ENDS)
def test_nothing_that_it_started_outlives(hasty: Place, what: str) -> None:
    do, after, end = ENDS[what]
    running = family(hasty, after)
    do(hasty, running)
    assert running.end() == end
    if end.reason is ExitReason.EXITED:
        assert running.living == [], "they were gone before its end was told"
    eventually(lambda: not running.living, "all of them are gone")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_the_processor(place: Place, number: signal.Signals) -> None:
    word = mark()
    with processor(place, word) as process:
        # The fork server, and of each family a reaper.
        eventually(lambda: len(living(word)) >= 2 * (MEMBERS + 1) + 2, "both are there")
        process.send_signal(number)
        process.wait(SOON)
        eventually(lambda: not living(word), "nothing is left")


def test_nothing_outlives_the_processor_and_the_fork_server_together(place: Place) -> None:
    word = mark()
    with processor(place, word) as process:
        eventually(lambda: len(living(word)) >= 2 * (MEMBERS + 1) + 2, "both are there")
        (fork_server,) = (pid for pid in living(word) if parent(pid) == process.pid)
        kill([fork_server, process.pid])
        process.wait(SOON)
        eventually(lambda: not living(word), "nothing is left")


def test_a_program_dies_with_its_reaper_though_the_fork_server_is_gone_as_well(
    place: Place,
) -> None:
    running = Running(place, "sh", "-c", "echo $$; exec sleep 1000")
    keeper = parent(running.pid)
    kill([parent(keeper), keeper])
    assert running.end() == ChildExit(ExitReason.LOST)
    eventually(lambda: not running.living, "it is gone")


HOPPER = """
import os
while True:
    if os.fork():
        os._exit(0)
"""


def test_who_forks_and_exits_over_and_over_is_caught(place: Place) -> None:
    running = Running(place, sys.executable, "-c", HOPPER)
    assert running.end() == ChildExit(EXIT, 0)
    assert running.living == []


def test_the_next_start_works_after_the_fork_server_was_killed(place: Place) -> None:
    running = family(place)
    fork_server = parent(parent(running.pid))
    kill([fork_server])
    running.end()
    for _ in range(3):
        assert sh(place, "echo again")[:2] == (ChildExit(EXIT, 0), b"again\n")


def test_a_lost_keeper_takes_nobody_elses_run_along(place: Place) -> None:
    first, second = family(place), family(place)
    kill([parent(first.pid)])
    assert first.end() == ChildExit(ExitReason.LOST)
    eventually(lambda: not first.living, "the first is gone")
    eventually(lambda: len(second.living) >= MEMBERS, "nobody of the second is missing")
    go(place)
    assert second.end() == ChildExit(EXIT, 0)


def test_a_launcher_that_stops_ends_what_runs_without_waiting_for_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.processor.children.child.STOP_SECONDS", 2 * PATIENCE)
    running = family(place)
    began = time.monotonic()
    place.launcher.stop()
    assert time.monotonic() - began < PATIENCE
    assert running.living == []
    assert running.end() == ChildExit(EXIT, -9)


def test_a_child_that_is_let_go_of_is_ended(place: Place) -> None:
    word = mark()
    child = place.launcher.start(["sleep", "1000"], place.yard, {"MARK": word, "PATH": "/bin"}, b"")
    eventually(lambda: len(living(word)) == 1, "it is there")
    child.close()
    eventually(lambda: not living(word), "it is gone")


def test_a_stop_lets_it_end_in_good_order_first(place: Place) -> None:
    text = "trap 'echo bye; exit 3' INT; echo $$; while :; do sleep 0.05; done"
    running = Running(place, "sh", "-c", text)
    assert running.pid
    place.stop.set()
    assert running.end() == ChildExit(EXIT, 3)
    assert running.out.endswith(b"bye\n")
    assert running.child.stopped


def test_a_stop_at_once_leaves_it_no_time(place: Place) -> None:
    text = "trap 'echo bye; exit 3' INT; echo $$; while :; do sleep 0.05; done"
    running = Running(place, "sh", "-c", text)
    assert running.pid
    place.stop.set(at_once=True)
    assert running.end() == ChildExit(EXIT, -9)
    assert b"bye" not in running.out


def test_a_stop_before_it_was_started_ends_it_as_well(place: Place) -> None:
    place.stop.set()
    running = Running(place, "sleep", "1000")
    assert running.end() == ChildExit(EXIT, -2)
    assert running.child.stopped


def test_a_child_that_ended_by_itself_was_not_stopped(place: Place) -> None:
    running = Running(place, "true")
    assert running.end() == ChildExit(EXIT, 0)
    assert not running.child.stopped


def test_what_it_reads_arrives_whole_while_it_writes_as_much(place: Place) -> None:
    data = os.urandom(5_000_000)
    end, out, err = sh(place, "head -c 5000000 /dev/zero >&2; cat; wc -c", data)
    assert end == ChildExit(EXIT, 0)
    assert out == data + b"0\n", "and then there is no more to read"
    assert err == bytes(5_000_000)


MUCH_AT_ONCE = """
import os
os.set_blocking(1, False)
assert os.write(1, b"x" * 500_000) == 500_000
open("written", "w")
"""


def test_all_that_it_wrote_is_read_though_it_ended_long_ago(place: Place) -> None:
    word = mark()
    argv = [sys.executable, "-S", "-c", MUCH_AT_ONCE]
    child = place.launcher.start(argv, place.yard, {"MARK": word}, b"")
    eventually((place.yard / "written").exists, "it has written all")
    eventually(lambda: not living(word), "it has ended")
    out = b"".join(data for _, data in child.output(place.stop, LIMITS))
    child.close()
    assert out == b"x" * 500_000


def test_its_end_is_seen_though_somebody_else_holds_its_output(place: Place) -> None:
    running = family(place)
    with Path(f"/proc/{running.pid}/fd/1").open("wb"), Path(f"/proc/{running.pid}/fd/2").open("wb"):
        go(place)
        assert running.end() == ChildExit(EXIT, 0)


def test_it_gets_no_other_file_and_no_signal_is_ignored(place: Place) -> None:
    _, out, _ = sh(place, "ls /proc/self/fd; grep SigIgn /proc/self/status")
    *fds, _, mask = out.split()
    assert fds == [b"0", b"1", b"2", b"3"], "and the directory that is listed"
    ignored = {number for number in range(1, 65) if int(mask, 16) >> (number - 1) & 1}
    ours = {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ}
    assert not ignored & ours


def test_it_has_its_directory_its_arguments_and_no_more_than_its_environment(place: Place) -> None:
    text = 'pwd; printf "%s|" "$@"; env'
    argv = ["sh", "-c", text, "sh", "-x", "two words", "", "é☃", "new\nline"]
    end, out, _ = run(place, *argv)
    head, _, tail = out.decode().partition("|")
    assert end == ChildExit(EXIT, 0)
    assert head == f"{place.yard}\n-x"
    assert tail.startswith("two words||é☃|new\nline|")
    assert {line.partition("=")[0] for line in tail.rpartition("|")[2].splitlines()} <= {
        *("PATH", "HOME", "MARK", "PWD", "OLDPWD", "SHLVL", "_"),
    }


def test_a_relative_directory_is_one_of_the_processors(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.path)
    child = place.launcher.start(["pwd"], Path("yard"), place.environ, b"")
    out = b"".join(data for _, data in child.output(place.stop, LIMITS))
    child.close()
    assert out.decode().strip() == str(place.yard)


def test_what_cannot_be_started_says_why(place: Place) -> None:
    (place.bin / "folder").mkdir()
    place.program("closed", "true").chmod(0o644)
    (place.bin / "headless").write_text("true")
    (place.bin / "headless").chmod(0o755)
    for name, number in {
        "nowhere": errno.ENOENT,
        "folder": errno.EACCES,
        "closed": errno.EACCES,
        "headless": errno.ENOEXEC,
        "a\0b": errno.EINVAL,
    }.items():
        assert run(place, name)[0] == ChildExit(ExitReason.NOT_STARTED, number), name
    (place.path / "file").touch()
    for name, number in {"nowhere": errno.ENOENT, "file": errno.ENOTDIR}.items():
        child = place.launcher.start(["true"], place.path / name, place.environ, b"")
        assert list(child.output(place.stop, LIMITS)) == []
        child.close()
        assert child.end == ChildExit(ExitReason.NO_DIRECTORY, number), name


def test_it_runs_in_a_process_with_a_thousand_files(place: Place) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2000)), hard))
    with contextlib.ExitStack() as files:
        for _ in range(1100):
            files.enter_context(Path("/dev/null").open())
        assert sh(place, "echo $$; cat", b"in")[0] == ChildExit(EXIT, 0)
        stop = Stop()
        assert stop.fileno() > 1024
        assert not stop.wait(0)
        stop.set()
        assert stop.wait(SOON)
        stop.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_start_that_fails_for_want_of_files_leaves_none_behind(place: Place) -> None:
    started = []
    for more in range(20):
        before = open_files()
        with at_most(len(before) + more), contextlib.suppress(OSError):
            started.append(place.launcher.start(["true"], place.yard, place.environ, b""))
            break
        assert set(open_files()) <= set(before), f"with {more} more"
    (child,) = started
    assert list(child.output(place.stop, LIMITS)) == []
    child.close()
    assert sh(place, "echo again")[1] == b"again\n"


def test_a_fork_server_that_cannot_take_a_request_lives_on(place: Place) -> None:
    running = family(place)
    fork_server = parent(parent(running.pid))
    for most in (3, 5, 7, 9):
        with at_most(most, fork_server):
            assert run(place, "true")[0] == ChildExit(ExitReason.LOST)
        assert not running.over
    second = Running(
        place,
        "sh",
        "-c",
        "echo $$; cat",
    )
    assert parent(parent(running.pid)) == fork_server
    assert second.end() == ChildExit(EXIT, 0)
    go(place)
    assert running.end() == ChildExit(EXIT, 0)


def test_many_at_once_do_not_meet(place: Place) -> None:
    runs = [Running(place, "sh", "-c", f"cat; echo {number}") for number in range(40)]
    assert {running.end() for running in runs} == {ChildExit(EXIT, 0)}
    assert [int(running.out) for running in runs] == list(range(40))
