"""What a run is doing, as events for whoever watches: often enough to follow, and not more."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from bullpen.core.answers.said import clean
from bullpen.core.errors import BullpenError
from bullpen.core.events.append import EventType, tell
from bullpen.core.message import Message
from bullpen.core.store.base import Store

log = logging.getLogger(__name__)

INTERVAL = 0.5
LENGTH = 4000


class Progress:
    """The progress of one run."""

    def __init__(
        self, store: Store, message: Message, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._message = message
        self._clock = clock
        self._texts: list[str] = []
        self._told = float("-inf")

    def __call__(self, text: str) -> None:
        """Something was said or done."""
        self._texts.append(text)
        if self._clock() - self._told >= INTERVAL:
            self.flush()

    def flush(self) -> None:
        """Tell what was not told yet."""
        if not self._texts:
            return
        text = clean("\n".join(self._texts))[-LENGTH:]
        self._texts.clear()
        self._told = self._clock()
        try:
            with self._store.write(durable=False) as tx:
                tell(tx, EventType.AGENT_PROGRESS, self._message, text=text)
        except BullpenError as error:
            log.warning("progress of %s is not shown: %s", self._message.agent, error)
