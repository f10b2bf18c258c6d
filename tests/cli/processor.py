"""A processor for the commands to talk to."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from bullpen.core.background import count_live_workers
from bullpen.core.store.base import Store
from tests.cli.command import PROGRAM, Bullpen
from tests.cli.open_store import direct
from tests.processor.working import eventually


@contextmanager
def processor(bullpen: Bullpen) -> Iterator[None]:
    """A processor at work, ended by its process id."""
    with (bullpen.home / "processor.out").open("wb") as out:
        process = subprocess.Popen(
            [*PROGRAM, "run", "processor"],
            env=bullpen.environment(BULLPEN_GRACE_SECONDS="1"),
            stdout=out,
            stderr=out,
        )
    try:
        with direct(bullpen) as store:
            eventually(lambda: _signed_in(store), "the processor is ready")
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait(60)


def _signed_in(store: Store) -> bool:
    with store.read() as tx:
        return count_live_workers(tx).get("processor", 0) > 0
