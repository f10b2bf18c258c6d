"""Rounds: every contender once, in an order drawn anew, so that all meet the machine's moods."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Result = TypeVar("Result")


def interleave(
    turns: Mapping[str, Callable[[], Result]], rounds: int, warm_up: int
) -> dict[str, list[Result]]:
    """Give every contender its turn in each round; their results, round by round."""
    results: dict[str, list[Result]] = {name: [] for name in turns}
    for number in range(-warm_up, rounds):
        for name in random.sample(list(turns), len(turns)):
            gc.collect()
            result = turns[name]()
            if number >= 0:
                results[name].append(result)
    return results


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """The ratio in each round: what disturbed a round disturbed both."""
    return [over / under for over, under in zip(above, below, strict=True)]
