"""Services that a supervisor left behind: when they count as ended, and what else is done."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from bullpen.ops.services.launch import end_orphans
from bullpen.ops.services.supervisor import wait_for_exit
from tests.processor.working import eventually

STARTS = """
import subprocess, sys
print(subprocess.Popen(sys.argv[1:]).pid, flush=True)
sys.stdin.read()
"""
DEAF = "trap '' TERM; echo deaf; sleep 1000 & wait"
LONG = 120.0


@contextmanager
def child_of_a_careless_one(*command: str) -> Iterator[psutil.Process]:
    """A process whose parent never asks how it ended."""
    with subprocess.Popen(
        [sys.executable, "-c", STARTS, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        yield psutil.Process(int(parent.stdout.readline()))


def test_one_that_has_ended_is_not_waited_for_though_nobody_asks_how() -> None:
    told: list[str] = []
    with child_of_a_careless_one("sleep", "1000") as process:
        end_orphans({"scheduler": process}, LONG, told.append)
        assert process.status() == psutil.STATUS_ZOMBIE
    assert told == []


def test_one_that_does_not_end_is_killed_with_what_it_started() -> None:
    told: list[str] = []
    with subprocess.Popen(["sh", "-c", DEAF], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"deaf\n"
        deaf = psutil.Process(process.pid)
        eventually(lambda: bool(deaf.children()), "it has a child")
        family = [deaf, *deaf.children()]
        end_orphans({"processor": deaf}, 0.1, told.append)
        assert wait_for_exit(family, LONG) == []
    (said,) = told
    assert "Killing 1 process, still running after" in said
