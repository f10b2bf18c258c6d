"""bullpen status: its first line, pending actions, and the commands that it offers."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bullpen.cli.status import foreign_listener
from bullpen.core.message import ErrorKind
from bullpen.core.queue.lanes import pause_lane
from bullpen.core.queue.manage import hold
from bullpen.ops.services.launch import service_lock
from tests.cli.command import Bullpen
from tests.cli.conftest import bullpen
from tests.cli.terminal import COLUMNS, terminal
from tests.conformance.verbs import do, failed, hire, send, take
from tests.doctor.examined import settings_of, store_of

__all__ = ["bullpen"]

REASON = "claude is not installed: install it, log in, and check that it is on the PATH"


def offered(shown: str) -> Iterator[str]:
    """The commands that it offers, which have lines of their own."""
    yield from re.findall(r"^  bullpen (.*)$", shown, re.MULTILINE)


def make_work(bullpen: Bullpen) -> None:
    """A paused agent, a held message and a dead one."""
    with store_of(bullpen) as store:
        hire(store)
        do(store, pause_lane, "coder", REASON)
        do(store, hold, send(store), "it costs too much")
        hire(store, "writer")
        send(store, agent="writer")
        failed(store, take(store).token, ErrorKind.PERMANENT)


def test_status_leaves_removed_agents_out_and_offers_only_commands_that_work(
    bullpen: Bullpen,
) -> None:
    bullpen.ok("agent", "add", "former")
    bullpen.ok("agent", "remove", "former")
    make_work(bullpen)
    shown = bullpen("status").out
    assert "former" not in shown
    assert f"@coder is paused: {REASON}." in shown
    assert "\n1 message needs approval.\n" in shown
    assert "\n1 message is dead.\n" in shown
    assert len(list(offered(shown))) >= 3
    for each in offered(shown):
        bullpen.ok(*shlex.split(each))


def test_status_breaks_no_word_and_no_command_at_80_columns(bullpen: Bullpen) -> None:
    make_work(bullpen)
    whole = bullpen("status").out
    with terminal(bullpen, "status") as person:
        person.end()
        shown = person.shown
    assert max(map(len, shown.splitlines())) <= COLUMNS
    assert list(offered(shown)) == list(offered(whole))
    assert " ".join(REASON.split()) in " ".join(shown.split())


def test_the_first_line_of_status_says_whether_all_is_fine(bullpen: Bullpen) -> None:
    first, *rest = bullpen("status").out.splitlines()
    assert first == "Bullpen is not running. Next: bullpen up"
    assert rest


@pytest.mark.slow
def test_the_first_line_counts_the_pending_actions(empty: Bullpen) -> None:
    empty.ok("up")
    assert empty.ok("status").out.startswith("Bullpen is running. No pending actions.\n")
    empty.ok("agent", "pause", "assistant")
    assert empty.ok("status").out.startswith("Bullpen is running, with 1 pending action.\n")


@pytest.mark.slow
def test_status_and_up_name_no_api_while_another_program_has_its_port(empty: Bullpen) -> None:
    port = empty.environ["BULLPEN_API_PORT"]
    with socket.create_server(("127.0.0.1", int(port))):
        started = empty("up")
        assert "API: " not in started.out
        assert f"Another program answers on port {port}" in started.err
        empty.ok("down")  # so that no further attempt of the API to start is under way
        shown = empty("status").out
        assert f"Another program answers on port {port}" in shown
        assert "http://" not in shown
        assert empty("status", "--json").json["api"] is None
        opened = empty("open", "--print")
        assert opened.status == 1
        assert "is not the API of this home" in opened.err


HOLD_LOCK = """
import os, sys
from bullpen.core.settings import Settings
from bullpen.ops.services.launch import service_lock
with service_lock(Settings.load(os.environ), "api"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_an_api_that_holds_its_lock_without_the_port_does_not_hide_another_program(
    empty: Bullpen,
) -> None:
    settings = settings_of(empty)
    with socket.create_server(("127.0.0.1", settings.api_port)):
        with subprocess.Popen(
            [sys.executable, "-c", HOLD_LOCK],
            env=empty.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as starting:
            assert starting.stdout is not None
            assert starting.stdout.readline() == b"held\n"
            assert foreign_listener(settings) is not None
            starting.communicate()
        with service_lock(settings, "api"):  # this process has both, as a running API
            assert foreign_listener(settings) is None
    assert foreign_listener(settings) is None
