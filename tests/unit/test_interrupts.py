"""Ctrl-C during work that must not break off: recorded, deferred, or raised by the second one."""

from __future__ import annotations

import signal

import pytest

from bullpen.cli.interrupts import Interrupts, defer_interrupts

CTRL_C = signal.SIGINT


def test_the_first_is_recorded_and_the_second_raises() -> None:
    woken: list[bool] = []
    with Interrupts(wake=lambda: woken.append(True)).active() as interrupts:
        signal.raise_signal(CTRL_C)
        assert interrupts.received is CTRL_C
        assert woken == [True]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(CTRL_C)
    with pytest.raises(KeyboardInterrupt):  # the handler of before is back
        signal.raise_signal(CTRL_C)


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(CTRL_C, signal.SIG_IGN)
    try:
        with Interrupts().active() as interrupts:
            signal.raise_signal(CTRL_C)
        assert interrupts.received is None
        assert signal.getsignal(CTRL_C) is signal.SIG_IGN
    finally:
        signal.signal(CTRL_C, before)


def test_a_deferred_one_comes_at_the_end_of_the_block() -> None:
    done: list[bool] = []

    def work() -> None:
        with defer_interrupts():
            signal.raise_signal(CTRL_C)
            signal.raise_signal(CTRL_C)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [True]


def test_an_error_in_the_block_wins_over_a_deferred_one() -> None:

    def fail() -> None:
        with defer_interrupts():
            signal.raise_signal(CTRL_C)
            raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        fail()
