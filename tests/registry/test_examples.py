"""The examples are packages that work: a provider answers, a channel is a service."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.cli.command import PROGRAM, Bullpen, Result
from tests.cli.conftest import remove, stop_all
from tests.ports import free_port
from tests.processor.working import eventually

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LIMIT_SECONDS = 120.0

Service: TypeAlias = "dict[str, object]"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both examples, installed into a directory as pip would, without the network."""
    target = tmp_path_factory.mktemp("packages")
    uv = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps")
    subprocess.run(
        [
            *(*uv, "--no-build-isolation", "--python", sys.executable, "--target", str(target)),
            *(str(EXAMPLES / "bullpen-shout"), str(EXAMPLES / "bullpen-nothing")),
        ],
        env={**os.environ, "UV_CACHE_DIR": str(tmp_path_factory.mktemp("uv"))},
        check=True,
        timeout=LIMIT_SECONDS,
    )
    return target


@pytest.fixture
def home(packages: Path) -> Iterator[Bullpen]:
    """The command in a new home, where both packages are installed. Its path has a blank in it."""
    path = Path(tempfile.mkdtemp(prefix="bp x-", dir="/tmp"))
    try:
        yield Bullpen(
            path,
            {
                "BULLPEN_API_PORT": str(free_port()),
                "PYTHONPATH": os.pathsep.join([str(packages), *filter(None, sys.path)]),
            },
        )
    finally:
        stop_all(path)
        remove(path)


def run(bullpen: Bullpen, *args: str, **more: str) -> Result:
    """Run a command in a process of its own, which finds the packages, and must succeed."""
    done = subprocess.run(
        [*PROGRAM, *args],
        env=bullpen.environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == 0, done
    return Result(done.returncode, done.stdout, done.stderr)


def services(bullpen: Bullpen) -> dict[str, Service]:
    """The services as `bullpen status` shows them."""
    return {each["name"]: each for each in bullpen("status", "--json").json["services"]}


def test_a_packages_provider_answers_and_its_channel_is_a_service(home: Bullpen) -> None:
    run(home, "up", BULLPEN_NOTHING_TOKEN="a secret")
    run(home, "agent", "add", "loud", "--provider", "shout")
    assert "HELLO, YOU" in run(home, "send", "@loud hello, you").out
    log = home.home / "logs" / "nothing.log"
    eventually(lambda: "a token of 8 characters" in log.read_text(), "the client runs")
    run(home, "response", "send", "--channel", "nothing", "--to", "ann", "hello")
    eventually(lambda: "to ann: hello" in log.read_text(), "a response was delivered")
    first = services(home)["nothing"]
    assert first["state"] == "RUNNING"
    os.kill(int(str(first["pid"])), signal.SIGKILL)

    def is_back() -> bool:
        now = services(home)["nothing"]
        return now["state"] == "RUNNING" and now["pid"] != first["pid"]

    eventually(is_back, "the supervisor starts it again")
    run(home, "down")
    assert log.read_text().rstrip().endswith("has stopped")


def test_a_channel_is_left_out_until_its_settings_are_there(home: Bullpen) -> None:
    done = subprocess.run(
        [*PROGRAM, "run", "channel", "nothing"],
        env=home.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode != 0
    assert "needs the setting nothing.token" in done.stderr
    assert "BULLPEN_NOTHING_TOKEN" in done.stderr


def test_an_account_that_is_set_up_while_bullpen_runs_is_started_without_a_restart(
    home: Bullpen,
) -> None:
    run(home, "up")
    before = {name: each["pid"] for name, each in services(home).items()}
    assert not any(each.startswith("nothing") for each in before)
    home.ok("config", "set", "api_processes", "1")  # creates the file
    with (home.home / "settings.toml").open("a") as file:
        file.write('[nothing]\ntoken = "a secret"\n[nothing-office]\ntoken = "another"\n')
    run(home, "up")
    now = services(home)
    assert {name: now[name]["pid"] for name in before} == before
    assert {now[each]["state"] for each in ("nothing", "nothing-office")} == {"RUNNING"}
    with (home.home / "settings.toml").open("a") as file:
        file.write('[nothing-lab]\ntoken = "a third"\n')
    assert "nothing-lab" in run(home, "restart", "nothing-lab").out
    assert services(home)["nothing-lab"]["state"] == "RUNNING"
    run(home, "restart")
    assert {"nothing", "nothing-office", "nothing-lab"} <= services(home).keys()
    assert "a secret" not in (home.home / "logs" / "nothing.log").read_text()
