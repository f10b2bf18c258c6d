"""The API's process: the objects and threads that its requests share."""

from __future__ import annotations

import ctypes
import gc

from flask_openapi3.openapi import OpenAPI

from bullpen.api import metrics
from bullpen.api.app import create_app
from bullpen.api.context import Api
from bullpen.api.long_poll import LongPoll
from bullpen.api.streams.hub import Hub
from bullpen.api.streams.replay import Replays
from bullpen.api.streams.subscribe import raise_descriptor_limit
from bullpen.core.access.owner import OwnerToken
from bullpen.core.background import LIVENESS_SECONDS, Loop, WorkerProcess
from bullpen.core.settings import Settings
from bullpen.core.store.group_commit import GroupCommit
from bullpen.core.store.open import open_store
from bullpen.ops.services.supervisor import Supervisor

KIND = "api"

LARGE_BYTES = 1 << 18
"""An unused block of memory of this size or more is returned to the system."""

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
"""Parameters of glibc's mallopt."""


class ApiProcess:
    """The store, the hub of live events, the long polls, and the application."""

    def __init__(self, settings: Settings) -> None:
        raise_descriptor_limit(settings.api_streams + 2 * settings.api_threads)
        self._store = open_store(settings)
        self._process = WorkerProcess(self._store, KIND)
        owner = OwnerToken(settings)
        self.hub = Hub(self._store, owner)
        self.replays = Replays(self.hub, self._store)
        self.long_poll = LongPoll(settings.api_threads // 2)
        self._process.on("messages", self.long_poll.notify)
        self._process.on("events", self.hub.wake)
        self._process.add(Loop("metrics", self._refresh_metrics))
        self.app: OpenAPI = create_app(
            Api(
                store=self._store,
                hub=self.hub,
                replays=self.replays,
                long_poll=self.long_poll,
                supervisor=Supervisor(settings),
                owner=owner,
                group_commit=GroupCommit(self._store),
                started_at=self._store.clock.now(),
            )
        )

    def start(self) -> None:
        """Start the threads."""
        _return_memory()
        self.hub.start()
        self.replays.start()
        self._process.start()
        # These objects stay: collecting them again and again would pause all streams, and at the
        # end the process for seconds.
        gc.collect()
        gc.freeze()

    def close_streams(self) -> None:
        """End every stream and every long poll, because none ends on its own."""
        self.long_poll.close()
        self.replays.stop()
        self.hub.stop()

    def stop(self) -> None:
        """Unregister after the last request."""
        self.close_streams()
        self._process.stop()
        self._store.close()

    def _refresh_metrics(self) -> float:
        metrics.metrics_of(self.app).refresh()
        return float(LIVENESS_SECONDS)


def _return_memory() -> None:
    """Return the memory of long texts after use; glibc would keep it for each thread."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # not in other C libraries
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, LARGE_BYTES)
        set_option(_M_ARENA_MAX, 2)
