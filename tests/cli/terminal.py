"""A command at a terminal of its own: what a person sees there, and types."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.cli.command import PROGRAM, Bullpen
from tests.processor.working import eventually

SECONDS = 60.0
"""Generous: what is waited for takes milliseconds on a quiet machine."""

LINES, COLUMNS = 24, 80

CTRL_C, CTRL_D = "\x03", "\x04"
CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")

READ = {"0", "63"}
"""The number of the system call, on x86 and on ARM."""


class Terminal:
    """A process whose terminal is ours."""

    def __init__(self, number: int, process: subprocess.Popen[bytes]) -> None:
        self._number = number
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.process = process
        self.raw = ""
        """All that was shown, as it came."""
        self._at = 0

    @property
    def shown(self) -> str:
        """All that was shown, without the codes that move the cursor and set colours."""
        return CODES.sub("", self.raw).replace("\r\n", "\n")

    def until(self, text: str, seconds: float = SECONDS) -> str:
        """Wait until this is shown, after what was waited for before; gives what came with it."""
        deadline = time.monotonic() + seconds
        while (found := self.shown.find(text, self._at)) < 0:
            assert time.monotonic() < deadline, f"{text!r} is not shown:\n{self.shown}"
            if not self._read(0.1):
                assert text in self.shown[self._at :], f"it ended without {text!r}:\n{self.shown}"
        before, self._at = self._at, found + len(text)
        return self.shown[before : self._at]

    def type(self, text: str) -> None:
        """Press these keys."""
        os.write(self._number, text.encode())

    def press(self, keys: str) -> None:
        """Press these keys once it waits for one: a signal just before that is not heard there."""
        eventually(self._waits_for_keys, "it waits for keys", SECONDS)
        self.type(keys)

    def end(self, seconds: float = SECONDS) -> int:
        """Wait for its end; gives the exit status."""
        deadline = time.monotonic() + seconds
        while self._read(0.1):
            assert time.monotonic() < deadline, f"it does not end:\n{self.shown}"
        return self.process.wait(max(0.0, deadline - time.monotonic()))

    def look(self) -> None:
        """Take in what is shown by now."""
        self._read(0.0)

    def _read(self, seconds: float) -> bool:
        """Take in what is shown; false when nobody shows anything any more."""
        ended = self.process.poll() is not None  # asked first: then its last words are there
        ready, _, _ = select.select([self._number], [], [], seconds)
        if not ready:
            return not ended
        with suppress(OSError):  # its last process has ended
            data = os.read(self._number, 1 << 16)
            self.raw += self._decoder.decode(data)
            return bool(data)
        return False

    def _waits_for_keys(self) -> bool:
        """Whether it sleeps until a line is typed, as far as this system tells."""
        self.look()
        place = Path("/proc") / str(self.process.pid)
        try:
            call, *given = (place / "syscall").read_text().split()
        except (OSError, ValueError):
            return True
        if call not in READ:
            return False
        with suppress(OSError):
            target = (place / "fd" / str(int(given[0], 16))).readlink()
            return str(target).startswith(("/dev/pts/", "/dev/tty"))
        return False


@contextmanager
def terminal(
    bullpen: Bullpen,
    *args: str,
    stdout: int | None = None,
    program: Sequence[str] = PROGRAM,
    **more: str,
) -> Iterator[Terminal]:
    """Run a command at a terminal; it is killed at the end if it is still there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [*program, *args],
        env=bullpen.environment(**{"TERM": "xterm-256color", **more}),
        stdin=theirs,
        stdout=theirs if stdout is None else stdout,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_own,
    )
    os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        process.kill()
        process.wait(SECONDS)
        os.close(ours)


def _own() -> None:
    """Make it the terminal of this session, so that Ctrl-C there is a signal here."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
