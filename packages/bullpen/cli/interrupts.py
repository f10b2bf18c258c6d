"""Ctrl-C while a command waits: heard at once, and answered when it suits; a second one ends it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Hears what asks this process to end; while it is active none of it ends the process."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self.heard: signal.Signals | None = None

    @contextmanager
    def active(self) -> Iterator[Interrupts]:
        """Hear them in this block; what was ignored before, as by `nohup`, still is."""
        before = {number: signal.getsignal(number) for number in SIGNALS}
        heeded = {each: old for each, old in before.items() if old is not signal.SIG_IGN}
        for number in heeded:
            signal.signal(number, self._hear)
        try:
            yield self
        finally:
            for number, old in heeded.items():
                signal.signal(number, old)

    def _hear(self, number: int, _: FrameType | None) -> None:
        if self.heard is not None:
            raise KeyboardInterrupt
        self.heard = signal.Signals(number)
        self._wake()

    def choose(self, question: str, answers: tuple[str, ...], otherwise: str) -> str:
        """Ask the person at the terminal; Ctrl-C, or the end of input, is the last of these."""
        try:
            while True:
                sys.stderr.write(f"{question} ")
                sys.stderr.flush()
                line = sys.stdin.readline()
                given = line.strip().lower()
                found = [each for each in answers if given and each.startswith(given)]
                if len(found) == 1:
                    self.heard = None
                    return found[0]
                if not line:
                    return otherwise
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            return otherwise


def is_interactive() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()
