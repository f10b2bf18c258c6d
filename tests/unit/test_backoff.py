"""How long to wait before the next try."""

from __future__ import annotations

import random

import pytest

from bullpen.core.backoff import backoff
from bullpen.core.clock import MINUTE, SECOND

BASE, MOST = 2 * SECOND, 5 * MINUTE


@pytest.mark.parametrize(
    ("attempt", "ceiling"),
    [(1, 2), (2, 4), (3, 8), (5, 32), (8, 256), (9, 300), (10, 300), (1000, 300), (10**9, 300)],
)
def test_the_ceiling_doubles_with_every_failure_up_to_the_most(attempt: int, ceiling: int) -> None:
    assert backoff(attempt, BASE, MOST, lambda: 1.0) == ceiling * SECOND


def test_the_wait_is_spread_over_all_of_its_range() -> None:
    chance = random.Random(1).random
    waits = [backoff(8, BASE, MOST, chance) for _ in range(2000)]
    assert min(waits) < 10 * SECOND
    assert max(waits) > 246 * SECOND
    assert 118 * SECOND < sum(waits) / len(waits) < 138 * SECOND


@pytest.mark.parametrize("attempt", [1, 2, 9])
def test_a_wait_is_never_nothing(attempt: int) -> None:
    assert backoff(attempt, BASE, MOST, lambda: 0.0) == BASE
