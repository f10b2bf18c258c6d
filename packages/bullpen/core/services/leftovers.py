"""Services without a supervisor, as its sudden death leaves them for a while: found and ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import psutil

from bullpen.core.services.ended import wait_for_exit
from bullpen.core.services.lock import lock_holders
from bullpen.core.settings import Settings

KILL_SECONDS = 10.0


def find_orphans(settings: Settings) -> dict[str, psutil.Process]:
    """The processes of this home's services, by name. Asked while no supervisor runs."""
    found = {}
    for name, pid in lock_holders(settings).items():
        with suppress(psutil.NoSuchProcess):
            found[name] = psutil.Process(pid)
    return found


def end_orphans(
    found: Mapping[str, psutil.Process], seconds: float, tell: Callable[[str], None]
) -> None:
    """Ask them to end; with what is still there after this time, its children go as well."""
    processes = list(found.values())
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            each.terminate()
    alive = wait_for_exit(processes, seconds)
    if not alive:
        return
    tell(f"{len(alive)} did not end within {seconds:.0f} seconds and are killed")
    family = []
    for each in alive:
        with suppress(psutil.NoSuchProcess):
            family += [*each.children(recursive=True), each]
    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    wait_for_exit(family, KILL_SECONDS)
