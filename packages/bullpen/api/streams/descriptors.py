"""How many sockets the process may have open: systems allow 1024, and more to whoever asks."""

from __future__ import annotations

import resource

BESIDES = 256
"""For the database, the logs, and whatever else a process has open."""


def allow_sockets(count: int) -> None:
    """Ask for so many, or for as many as there may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + BESIDES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
