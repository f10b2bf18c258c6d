"""bullpen logs: what the services log, as it was and as it comes."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from bullpen.core.logs import LogFollower
from tests.cli.command import PROGRAM, Bullpen

EARLY = "2026-11-19T04:00:0{}.000Z [INFO] logger: {}"


def write(bullpen: Bullpen, name: str, *lines: str) -> None:
    """Add lines to a service's log."""
    (bullpen.home / "logs").mkdir(exist_ok=True)
    with (bullpen.home / "logs" / f"{name}.log").open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def test_all_services_are_shown_in_the_order_of_time(empty: Bullpen) -> None:
    write(empty, "api", EARLY.format(1, "one"), EARLY.format(3, "three"), "  a traceback")
    write(empty, "processor", EARLY.format(2, "two"), EARLY.format(4, "four"))
    shown = empty.ok("logs").out.splitlines()
    assert [line.split()[-1] for line in shown] == ["one", "two", "three", "traceback", "four"]
    assert [line.split()[0] for line in shown] == ["api", "processor", "api", "api", "processor"]
    assert empty.ok("logs", "api", "-n", "1").out == "  a traceback\n"
    found = empty.ok("logs", "processor", "--json").json
    assert found == [
        {"service": "processor", "line": EARLY.format(at, word)}
        for at, word in ((2, "two"), (4, "four"))
    ]


def test_no_secret_is_shown(empty: Bullpen) -> None:
    (empty.home / "settings.toml").write_text("anthropic_api_key = 'sk-very-secret-key'\n")
    write(empty, "api", EARLY.format(1, "with sk-very-secret-key and bp_0123456789abcdef"))
    out = empty.ok("logs").out
    assert "sk-very-secret-key" not in out
    assert "bp_0123456789abcdef" not in out


def test_where_nothing_is_logged_it_says_what_to_do(empty: Bullpen) -> None:
    found = empty.ok("logs")
    assert found.out == ""
    assert "bullpen up" in found.err
    assert empty.ok("logs", "--json").json == []
    assert empty("logs", "nonsense").status == 2


def test_new_lines_come_as_they_are_written_and_ctrl_c_ends_it(empty: Bullpen) -> None:
    write(empty, "api", EARLY.format(1, "one"))
    process = subprocess.Popen(
        [*PROGRAM, "logs", "--follow"],
        env=empty.environment(PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().endswith("one\n")
    write(empty, "processor", EARLY.format(2, "two"))
    assert process.stdout.readline().endswith("two\n")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode in (0, 1, 130)
    assert "Traceback" not in err


def test_a_closed_pipe_ends_it_in_silence(empty: Bullpen) -> None:
    write(empty, "api", *(EARLY.format(1, f"line {number}") for number in range(5000)))
    program = " ".join(f"'{word}'" for word in PROGRAM)
    result = subprocess.run(
        ["sh", "-c", f"{program} logs api -n 5000 | head -n 1"],
        env=empty.environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""


@pytest.mark.parametrize("way", ["renamed", "emptied"])
def test_each_line_is_given_once_across_a_rotation(tmp_path: Path, way: str) -> None:
    path = tmp_path / "api.log"
    path.write_text("before\n")
    follower = LogFollower(path)
    with path.open("a") as file:
        file.write("one\ntw")
    assert follower.lines() == ["one"]
    with path.open("a") as file:
        file.write("o\nthree\n")
    if way == "renamed":
        path.rename(tmp_path / "api.log.1")
        path.write_text("four\n")
        assert follower.lines() == ["two", "three", "four"]
    else:
        assert follower.lines() == ["two", "three"]
        os.truncate(path, 0)
        path.write_text("four\n")
        assert follower.lines() == ["four"]
    assert follower.lines() == []
    follower.close()


def test_a_log_that_begins_later_is_followed_from_its_beginning(tmp_path: Path) -> None:
    follower = LogFollower(tmp_path / "api.log")
    assert follower.lines() == []
    (tmp_path / "api.log").write_text("one\n")
    assert follower.lines() == ["one"]
    follower.close()
