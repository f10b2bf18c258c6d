"""Wrong tokens, counted by address: after so many, more of them are refused unlooked at."""

from __future__ import annotations

import threading
from collections import OrderedDict

from bullpen.core.clock import MINUTE

MOST = 10
"""So many wrong tokens of one address in a minute are looked at."""

ADDRESSES = 1024


class Failures:
    """The last minute's failures of each address; of many addresses, the latest ones."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = threading.Lock()

    def too_many(self, address: str, now: int) -> bool:
        """Whether this address has failed so often that its next wrong token is refused."""
        since, count = self._counts.get(address, (now, 0))
        return now - since < MINUTE and count >= MOST

    def add(self, address: str, now: int) -> bool:
        """Count one more; true if it is the one that closes the door."""
        with self._lock:
            since, count = self._counts.pop(address, (now, 0))
            if now - since >= MINUTE:
                since, count = now, 0
            self._counts[address] = (since, count + 1)
            while len(self._counts) > ADDRESSES:
                self._counts.popitem(last=False)
        return count + 1 == MOST
