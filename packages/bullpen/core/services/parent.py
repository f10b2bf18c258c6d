"""A service ends with the supervisor that started it, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Mapping

from bullpen.core.settings import Settings

PR_SET_PDEATHSIG = 1


def terminate_with_parent(parent: int) -> None:
    """Get SIGTERM when this process, which started the present one, is gone. Only Linux can."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it went before it could be asked to tell
        os.kill(os.getpid(), signal.SIGTERM)


def terminate_with_supervisor(settings: Settings) -> None:
    """Get SIGTERM when the supervisor of this home is gone, be it already."""
    terminate_with_parent(int((settings.run / "supervisord.pid").read_text(encoding="utf-8")))


def is_supervised(environ: Mapping[str, str]) -> bool:
    """Whether the supervisor started this process, rather than a person."""
    return "SUPERVISOR_PROCESS_NAME" in environ
