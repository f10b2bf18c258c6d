"""The stopwatch that all peers are timed with."""

from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter


def portions(count: int, size: int) -> Iterator[int]:
    """Cut `count` messages into portions of `size`, the last one perhaps smaller."""
    for done in range(0, count, size):
        yield min(size, count - done)


def laps(count: int, lap: Callable[[], None]) -> list[float]:
    """Run `lap` `count` times and return the seconds of each."""
    seconds = []
    for _ in range(count):
        start = perf_counter()
        lap()
        seconds.append(perf_counter() - start)
    return seconds


def total(count: int, size: int, lap: Callable[[int], None]) -> float:
    """Run `lap` with each portion of `size` and return the seconds of all together."""
    start = perf_counter()
    for portion in portions(count, size):
        lap(portion)
    return perf_counter() - start


async def laps_async(count: int, lap: Callable[[], Awaitable[None]]) -> list[float]:
    """Await `lap` `count` times and return the seconds of each."""
    seconds = []
    for _ in range(count):
        start = perf_counter()
        await lap()
        seconds.append(perf_counter() - start)
    return seconds


async def total_async(count: int, size: int, lap: Callable[[int], Awaitable[None]]) -> float:
    """Await `lap` with each portion of `size` and return the seconds of all together."""
    start = perf_counter()
    for portion in portions(count, size):
        await lap(portion)
    return perf_counter() - start
