"""Children at work, alone and with a family, their output read by a thread."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bullpen.processor.children.child import Child, ChildExit, Limits
from tests.processor.turns import Place, kill, living, mark
from tests.processor.working import SOON, eventually

LIMITS = Limits(idle=60, total=120)
FAMILY = """
trap '' INT TERM
setsid sleep 1000 &
( (setsid sh -c 'trap "" INT TERM HUP; sleep 1000; sleep 1000' &) & )
nohup sleep 1000 >/dev/null 2>&1 &
setsid setsid sh -c 'trap "" INT TERM; exec sleep 1000' >/dev/null 2>&1 </dev/null &
echo $$
while [ ! -e $here/go ]; do echo still there; sleep 0.05; done
"""
"""A program that starts what outlives programs, ignores signals, and waits for a word."""
MEMBERS = 6
"""Itself and those that stay; its `sleep 0.05` comes and goes."""


class Running:
    """A child, its output read by a thread."""

    def __init__(
        self, place: Place, *argv: str, limits: Limits = LIMITS, stdin: bytes = b""
    ) -> None:
        self.mark = mark()
        environ = {**place.environ, "MARK": self.mark}
        self.child: Child = place.launcher.start(argv, place.yard, environ, stdin)
        self.out = b""
        self.err = b""
        self._place = place
        self._limits = limits
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        for is_error, data in self.child.output(self._place.stop, self._limits):
            if is_error:
                self.err += data
            else:
                self.out += data
        self.child.close()

    @property
    def over(self) -> bool:
        """Whether its output has ended."""
        return not self._thread.is_alive()

    @property
    def pid(self) -> int:
        """Its process, which it prints first."""
        eventually(lambda: b"\n" in self.out, "it has printed its process id")
        return int(self.out.split()[0])

    @property
    def living(self) -> list[int]:
        """All that was started for it."""
        return living(self.mark)

    def end(self) -> ChildExit:
        """How it ended."""
        self._thread.join(SOON)
        assert self.over, "its output ends"
        assert self.child.end is not None
        return self.child.end


def run(
    place: Place, *argv: str, limits: Limits = LIMITS, stdin: bytes = b""
) -> tuple[ChildExit, bytes, bytes]:
    """How a child ended, and what it wrote."""
    running = Running(place, *argv, limits=limits, stdin=stdin)
    end = running.end()
    return end, running.out, running.err


def sh(place: Place, text: str, stdin: bytes = b"") -> tuple[ChildExit, bytes, bytes]:
    """The same of a shell's commands."""
    return run(place, "sh", "-c", text, stdin=stdin)


def family(place: Place, after: str = "", limits: Limits = LIMITS) -> Running:
    """The program that starts so much, all of it at work."""
    place.program("family", FAMILY + after)
    running = Running(place, "family", limits=limits)
    eventually(lambda: len(running.living) >= MEMBERS, "all of them are there")
    return running


def go(place: Place) -> None:
    """Let the family's head go on."""
    (place.path / "go").touch()


PROCESSOR = """
import os, sys
from pathlib import Path
from bullpen.processor.children.child import Limits
from bullpen.processor.children.child import Launcher
from bullpen.processor.children.child import Stop

launcher, stop = Launcher(), Stop()
children = [launcher.start(["family"], Path("."), dict(os.environ), b"") for _ in range(2)]
for _ in children[0].output(stop, Limits(60, 120)):
    pass
"""


@contextmanager
def processor(place: Place, word: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs two families; the fork server and the reapers bear its mark as well."""
    place.program("family", FAMILY)
    paths = os.pathsep.join(path for path in sys.path if path)
    environ = {**place.environ, "PYTHONPATH": paths, "MARK": word}
    process = subprocess.Popen([sys.executable, "-c", PROCESSOR], env=environ, cwd=place.yard)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        kill(living(word))
