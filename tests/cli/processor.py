"""A processor for the commands to talk to."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cli.command import PROGRAM, Bullpen


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
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait(60)
