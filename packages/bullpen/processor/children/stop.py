"""Word to a run that it is to end. It can be waited for, alone or beside files."""

from __future__ import annotations

import math
import os
import select


class Stop:
    """Set once, by any thread; seen by one."""

    def __init__(self) -> None:
        self._heard, self._hearing = os.pipe()
        self.at_once = False
        """No time to end in good order: the work is somebody else's already."""
        self._set = False

    def set(self, *, at_once: bool = False) -> None:
        """Let the run end."""
        self.at_once = self.at_once or at_once
        if not self._set:
            self._set = True
            os.write(self._hearing, b"x")

    def is_set(self) -> bool:
        """Whether it is to end."""
        return self._set

    def wait(self, seconds: float) -> bool:
        """Wait this long for the word; true if it has come."""
        # Unlike select() it takes a file of any number.
        poll = select.poll()
        poll.register(self, select.POLLIN)
        return bool(poll.poll(math.ceil(max(0.0, seconds) * 1000)))

    def fileno(self) -> int:
        """A file that can be read once the word has come."""
        return self._heard

    def close(self) -> None:
        """Let go of the files."""
        os.close(self._heard)
        os.close(self._hearing)
