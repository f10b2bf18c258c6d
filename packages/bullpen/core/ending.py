"""The end of a process, as its supervisor or a person at the keyboard asks for it."""

from __future__ import annotations

import os
import select
import signal


class StopSignals:
    """Hears SIGTERM and SIGINT from its making on, so that none is lost while a process starts."""

    def __init__(self) -> None:
        # Python runs a handler when its main thread comes to it, which one that has just begun to
        # read does not. The byte is written by the interrupted thread itself, whichever that is.
        self._told, tell = os.pipe()
        os.set_blocking(tell, False)
        signal.set_wakeup_fd(tell)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def wait(self, seconds: float | None = None) -> bool:
        """Until one of them comes, or this time is over; true if one came."""
        ready, _, _ = select.select([self._told], [], [], seconds)
        return bool(ready)
