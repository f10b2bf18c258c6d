"""Ctrl-C and the other signals that end a command, during work that must not break off."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends a command: Ctrl-C, a kill, and a terminal that is closed."""


class Interrupts:
    """Records signals while it is active; by default a second one raises KeyboardInterrupt."""

    def __init__(
        self,
        signals: Sequence[signal.Signals] = (signal.SIGINT,),
        *,
        wake: Callable[[], None] | None = None,
        second_raises: bool = True,
    ) -> None:
        self._signals = signals
        self._wake = wake
        self._second_raises = second_raises
        self.received: signal.Signals | None = None

    @contextmanager
    def active(self) -> Iterator[Interrupts]:
        """Record the signals in this block; one that was ignored, as by `nohup`, stays ignored."""
        previous = {each: signal.getsignal(each) for each in self._signals}
        replaced = {each: old for each, old in previous.items() if old is not signal.SIG_IGN}
        for each in replaced:
            signal.signal(each, self._receive)
        try:
            yield self
        finally:
            for each, old in replaced.items():
                signal.signal(each, old)

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self.received is not None and self._second_raises:
            raise KeyboardInterrupt
        self.received = signal.Signals(number)
        if self._wake is not None:
            self._wake()


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Deliver Ctrl-C at the end of this block instead of within it."""
    with Interrupts(second_raises=False).active() as interrupts:
        yield
    if interrupts.received is not None:
        raise KeyboardInterrupt
