"""The one loop that waits for a condition."""

from __future__ import annotations

import time

from bullpen.core.clock import poll_until


def test_it_gives_the_first_true_result() -> None:
    results = iter([0, 0, 7, 8])
    assert poll_until(lambda: next(results), 60, 0) == 7


def test_it_gives_the_last_result_when_the_time_is_over() -> None:
    began = time.monotonic()
    assert poll_until(lambda: [], 0.05, 0.01) == []
    assert time.monotonic() - began >= 0.05


def test_without_time_it_looks_once() -> None:
    looks: list[int] = []
    poll_until(lambda: looks.append(1), 0, 60)
    assert looks == [1]
