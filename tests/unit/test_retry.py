"""RetryPolicy: how long to wait before the next attempt."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from bullpen.core.clock import DAY, MINUTE, SECOND
from bullpen.core.retry import RetryPolicy
from bullpen.core.settings import Settings

BASE, LONGEST = 2 * SECOND, 5 * MINUTE

DELAYS = st.integers(1, 10**9)
FAILURES = st.integers(0, 10**9)
CHANCES = st.floats(0.0, 1.0, exclude_max=True)


def policy(chance: float, base: int = BASE, longest: int = LONGEST) -> RetryPolicy:
    return RetryPolicy(base=base, longest=longest, random=lambda: chance)


def test_the_ceiling_doubles_with_every_failure_up_to_the_longest() -> None:
    ceilings = {1: 2, 2: 4, 3: 8, 5: 32, 8: 256, 9: 300, 10: 300, 1000: 300, 10**9: 300}
    delays = {failures: policy(1.0).delay(failures) // SECOND for failures in ceilings}
    assert delays == ceilings


def test_the_delay_is_spread_over_all_of_its_range() -> None:
    spread = RetryPolicy(base=BASE, longest=LONGEST, random=random.Random(1).random)
    delays = [spread.delay(8) for _ in range(2000)]
    assert min(delays) < 10 * SECOND
    assert max(delays) > 246 * SECOND
    assert 118 * SECOND < sum(delays) / len(delays) < 138 * SECOND


@given(base=DELAYS, longest=DELAYS, failures=FAILURES, chance=CHANCES)
def test_a_delay_is_never_nothing_and_never_over_the_longest(
    base: int, longest: int, failures: int, chance: float
) -> None:
    delay = policy(chance, base, longest).delay(failures)
    assert min(base, longest) <= delay <= longest


@given(failures=st.integers(1, 60), chance=CHANCES)
def test_a_delay_is_at_most_the_base_doubled_with_every_failure(
    failures: int, chance: float
) -> None:
    assert policy(chance).delay(failures) <= BASE * 2 ** (failures - 1)


@given(failures=FAILURES, retry_after=st.integers(-DAY, DAY), chance=CHANCES)
def test_what_the_provider_asks_for_is_the_delay_but_never_below_zero(
    failures: int, retry_after: int, chance: float
) -> None:
    assert policy(chance).delay(failures, retry_after) == max(0, retry_after)


def test_the_settings_are_in_seconds() -> None:
    made = RetryPolicy.from_settings(
        Settings(retry_base_seconds=3, retry_max_seconds=70), lambda: 0.5
    )
    assert (made.base, made.longest, made.random()) == (3 * SECOND, 70 * SECOND, 0.5)
