"""The client of the channel `nothing`. Only the channel's process imports it."""

from __future__ import annotations

import threading

from bullpen import ChannelContext

LOOK_SECONDS = 60.0


class Client:
    """The client of the channel `nothing`."""

    def __init__(self, context: ChannelContext) -> None:
        self._log = context.log
        self._token = context.setting("token")
        self._work = threading.Event()
        # A process stored a response for this channel. A real client would
        # deliver it. The callback may also be called without a response.
        context.on_commit(f"responses:{context.info.name}", self._work.set)

    def run(self, stop: threading.Event) -> None:
        """Do nothing until `stop` is set."""
        self._log.info("ready, with a token of %s characters", len(self._token))
        while not stop.wait(1.0):
            if self._work.is_set():
                self._work.clear()
                self._log.info("there may be a response to deliver")
