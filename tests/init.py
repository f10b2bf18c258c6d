"""Init: runs a command and, on Linux, reaps the processes that lose their parent below it.

`python -m tests.init COMMAND...`. Many tests wait until a process that is not a child
of theirs is gone. Process 1 should reap it at once, but that of some containers looks only every
two seconds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

PR_SET_CHILD_SUBREAPER = 36


def run(command: Sequence[str]) -> int:
    """Run the command; returns its status once it has ended, whatever still runs below it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, _ignore)  # a terminal sends it to the command as well
    child = os.posix_spawnp(command[0], [*command], os.environ)
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(child, number))
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing; unlike SIG_IGN, the command does not inherit it."""


if __name__ == "__main__":
    ended = run(sys.argv[1:])
    sys.exit(ended if ended >= 0 else 128 - ended)
