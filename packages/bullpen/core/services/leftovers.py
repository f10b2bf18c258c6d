"""Services without a supervisor, as its sudden death leaves them for a while: found and ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import psutil

from bullpen.core.services.ended import still_there
from bullpen.core.services.lock import holders
from bullpen.core.settings import Settings

KILL_SECONDS = 10.0


def leftovers(settings: Settings) -> dict[str, psutil.Process]:
    """The processes of this home's services, by name. Asked while no supervisor runs."""
    found = {}
    for name, pid in holders(settings).items():
        with suppress(psutil.NoSuchProcess):
            found[name] = psutil.Process(pid)
    return found


def end_leftovers(
    found: Mapping[str, psutil.Process], seconds: float, tell: Callable[[str], None]
) -> None:
    """Ask them to end; with what is still there after this time, its children go as well."""
    processes = list(found.values())
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            each.terminate()
    alive = still_there(processes, seconds)
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
    still_there(family, KILL_SECONDS)
