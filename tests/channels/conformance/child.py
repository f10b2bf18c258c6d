"""A channel's process that kills itself between two steps: `python -m … CHANNEL STEP COUNT`."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.main import find_channel, run
from bullpen.channels.outgoing.delivering import Deliverer
from bullpen.core.logs import configure_logging
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from tests.channels.conformance.quick import waits


def die_around(right: Callable[..., Any], count: int, *, after: bool) -> Callable[..., Any]:
    """The function, killed before or after this call of it."""
    calls = 0

    async def wrong(*given: Any, **more: Any) -> Any:  # noqa: ANN401
        nonlocal calls
        calls += 1
        is_last = calls == count  # others may be called meanwhile
        if is_last and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = await right(*given, **more)
        if is_last and after:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return wrong


def main(name: str, step: str, count: int) -> None:
    """Serve the channel, and die at a step."""
    place, _, when = step.partition("-")
    owner: Any = {"write": AsyncStore, "send": Deliverer}.get(place)
    if owner is not None:
        method = {"write": "write", "send": "_send_within"}[place]
        setattr(owner, method, die_around(getattr(owner, method), count, after=when == "after"))
    for module, constant, value in waits(name):
        setattr(module, constant, value)
    settings = Settings.load(os.environ)
    configure_logging(settings)
    logging.info("dies at %s %d", step, count)
    with closing(open_store(settings)) as store:
        run(store, find_channel(name, settings))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
