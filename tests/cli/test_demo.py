"""bullpen demo team: shown apart from what is somebody's own, and gone when it is over."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from pydantic import TypeAdapter

from bullpen.cli import demo
from tests.cli.command import LIMIT_SECONDS, Bullpen
from tests.cli.entries import SHOWN_ELSEWHERE
from tests.cli.terminal import COLUMNS, CTRL_C, terminal
from tests.processor.working import eventually

ENDLESS = """
import importlib, pathlib, sys
from bullpen.cli.main import main
demo = importlib.import_module("bullpen.cli.demo")
demo.PLUGIN_FILE, demo.WAIT_SECONDS = pathlib.Path(sys.argv.pop(1)), 9999.0
main()
"""


@pytest.fixture
def place(empty: Bullpen) -> Path:
    """Where the demonstration is to be: whatever runs there is ended after the test."""
    return empty.home / "demo"


def endless(bullpen: Bullpen) -> tuple[str, ...]:
    """The command, whose demonstration stays with the first step: nobody comes too late to it."""
    lines = bullpen.home / "lines.py"
    lines.write_text(demo.PLUGIN_FILE.read_text().replace("!sleep 1", "!sleep 9999"))
    return (sys.executable, "-c", ENDLESS, str(lines))


def living(home: Path) -> list[str]:
    """The processes that belong to this home."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("BULLPEN_HOME") == str(home)
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_where_something_lies_it_is_not_shown(empty: Bullpen) -> None:
    (empty.home / "mine").touch()
    refused = empty("demo", "team", "--home", str(empty.home))
    assert refused.status == 1
    assert "is not empty" in refused.err
    assert [each.name for each in empty.home.iterdir()] == ["mine"]
    assert empty("demo", "team", BULLPEN_RUN="coder.0").status == 1


@pytest.mark.slow
def test_it_shows_handoffs_a_room_a_failure_and_what_becomes_of_it(
    empty: Bullpen, place: Path
) -> None:
    """Whatever the caller's own settings are."""
    own = {"BULLPEN_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "BULLPEN_API_PORT": "1"}
    shown = empty.ok("demo", "team", "--home", str(place), "--json", **own)
    assert shown.out.count("\n") == 1
    TypeAdapter(SHOWN_ELSEWHERE["demo team"]).validate_json(shown.out)
    found = shown.json
    assert found["counts"] == {
        "handoffs": 2,
        "room_posts": 4,
        "failed_and_tried_again": 1,
        "dead": 1,
        "tried_again_by_hand": 1,
    }
    assert [each["state"] for each in found["steps"]] == [
        *("answered", "answered", "failed", "answered"),
    ]
    assert [each["agent"] for each in found["steps"][0]["answers"]] == [
        *("coder", "reviewer", "writer"),
    ]
    assert found["seconds"] < 60
    assert (found["home"], found["kept"]) == (str(place), True)
    assert living(place) == []
    assert list(empty.home.iterdir()) == [place]  # nothing was made in the caller's own home
    kept = replace(empty, home=place)
    assert "review the fix" in kept.ok("history", "search", "fix").out
    assert kept.ok("room", "read", "dev").out.count("\n") >= 4
    assert kept("status").status == 3


@pytest.mark.slow
def test_it_is_told_as_it_goes_and_removed_if_that_is_wanted(empty: Bullpen, place: Path) -> None:
    with terminal(empty, "demo", "team", "--home", str(place), "--remove") as person:
        for text in (
            "Started the services.",
            "you → @dev: Fix the login",
            "@coder → @reviewer: ",
            "@writer failed",
            "@writer: Added to the changelog",
            "@coder → #dev: I fixed the login.",
            "could not answer",
            "bullpen queue retry cli_",
            "@writer: The release notes are written.",
            "Summary: 2 handoffs",
            f"Removed {place}.",
        ):
            person.until(text)
        assert person.end() == 0
    ours = [
        line for line in person.shown.split("\n") if str(place) not in line and "\r" not in line
    ]
    assert [line for line in ours if len(line) > COLUMNS] == []
    assert not place.exists()
    assert living(place) == []


@pytest.mark.slow
@pytest.mark.parametrize("at", ["Starting the services", "@coder is working"])
def test_ctrl_c_ends_its_services(empty: Bullpen, place: Path, at: str) -> None:
    args = ("demo", "team", "--home", str(place))
    with terminal(empty, *args, program=endless(empty)) as person:
        person.until(at)
        person.type(CTRL_C)
        person.until("Stopped.", LIMIT_SECONDS)
        assert person.end() == 1
    eventually(lambda: living(place) == [], "its services are gone", LIMIT_SECONDS)
    assert (place / "bullpen.db").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "end", [psutil.Process.kill, psutil.Process.terminate], ids=["SIGKILL", "SIGTERM"]
)
def test_its_services_do_not_outlive_it(
    empty: Bullpen, place: Path, end: Callable[[psutil.Process], None]
) -> None:
    process = subprocess.Popen(
        [*endless(empty), "demo", "team", "--home", str(place)],
        env=empty.environment(PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    with process, process.stdout:
        for line in process.stdout:
            if line.startswith("Started the services"):
                break
        assert living(place) != []
        end(psutil.Process(process.pid))
        assert process.wait(LIMIT_SECONDS) in (1, -signal.SIGKILL)
    eventually(lambda: living(place) == [], "its services are gone", LIMIT_SECONDS)
