"""A service ends with the supervisor that started it, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Mapping

PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Get SIGTERM when the process that started this one is gone. Only Linux can do this."""
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it went before it could be asked to tell
        os.kill(os.getpid(), signal.SIGTERM)


def is_supervised(environ: Mapping[str, str]) -> bool:
    """Whether the supervisor started this process, rather than a person."""
    return "SUPERVISOR_PROCESS_NAME" in environ
