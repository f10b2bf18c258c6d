"""A loop takes its steps when it is woken, goes on after errors, and stops when it is told."""

from __future__ import annotations

import logging
import threading

import pytest

from bullpen.core.background import Loop
from bullpen.core.errors import StoreBusy

LONG = 3600.0
SOON = 60.0


class Steps:
    """Counts the steps of a loop; each may be given something to raise."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self._taken = threading.Semaphore(0)
        self.count = 0

    def __call__(self) -> float:
        """Take a step."""
        self.count += 1
        self._taken.release()
        if self._errors:
            raise self._errors.pop(0)
        return LONG

    def wait(self) -> None:
        """Wait for the next step."""
        assert self._taken.acquire(timeout=SOON)


def test_a_loop_steps_at_once_and_whenever_it_is_woken() -> None:
    steps = Steps()
    loop = Loop("test", steps)
    loop.start()
    steps.wait()
    loop.wake()
    steps.wait()
    assert loop.stop()
    assert steps.count == 2


def test_a_loop_goes_on_after_an_error_of_any_kind(caplog: pytest.LogCaptureFixture) -> None:
    steps = Steps(StoreBusy("the database is locked"), ValueError("a mistake"))
    loop = Loop("test", steps, retry_seconds=0.001)
    with caplog.at_level(logging.WARNING):
        loop.start()
        for _ in range(3):
            steps.wait()
        assert loop.stop()
    assert "locked" in caplog.text
    assert "a mistake" in caplog.text


def test_a_stop_that_comes_between_two_steps_is_not_forgotten() -> None:
    steps = Steps()
    loop = Loop("test", steps)

    class Late(threading.Event):
        """Stops the loop just before it forgets that it was woken."""

        def clear(self) -> None:
            """Be told to stop, and only then forget."""
            loop._stopping.set()
            self.set()
            super().clear()

    loop._woken = Late()
    loop.start()
    loop._thread.join(SOON)
    assert not loop._thread.is_alive()
    assert steps.count == 0


def test_a_loop_that_never_began_stops() -> None:
    assert Loop("test", Steps()).stop()
