"""A processor for the commands to talk to."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from bullpen.core.background import count_live_workers
from bullpen.core.store.base import Store
from tests.cli.command import Bullpen
from tests.cli.open_store import direct
from tests.cli.warm import Service
from tests.processor.working import eventually


@contextmanager
def processor(bullpen: Bullpen) -> Iterator[None]:
    """A processor at work, ended by its process id."""
    environ = bullpen.environment(BULLPEN_GRACE_SECONDS="1")
    process = Service(["run", "processor"], environ, bullpen.home / "processor.out")
    try:
        with direct(bullpen) as store:
            eventually(lambda: _signed_in(store), "the processor is ready")
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)


def _signed_in(store: Store) -> bool:
    with store.read() as tx:
        return count_live_workers(tx).get("processor", 0) > 0
