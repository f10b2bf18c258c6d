"""The API's process: what lives beside its requests, from the first to the last."""

from __future__ import annotations

import gc
import logging

from flask_openapi3.openapi import OpenAPI

from bullpen.api import metrics
from bullpen.api.app import create_app
from bullpen.api.context import Api
from bullpen.api.long_poll import LongPoll
from bullpen.api.streams.hub import Hub
from bullpen.api.streams.subscribe import raise_descriptor_limit
from bullpen.core.access.owner import OwnerToken
from bullpen.core.background import (
    LIVENESS_SECONDS,
    Loop,
    register_worker,
    report_liveness,
    unregister_worker,
)
from bullpen.core.settings import Settings
from bullpen.core.store.group_commit import GroupCommit
from bullpen.core.store.open import open_store
from bullpen.core.wake.listener import WakeupDispatcher
from bullpen.ops.services.supervisor import Supervisor

log = logging.getLogger(__name__)

KIND = "api"


class ApiProcess:
    """The store, the hub of the live events, the bell of those who wait, and a heartbeat."""

    def __init__(self, settings: Settings) -> None:
        raise_descriptor_limit(settings.api_streams + 2 * settings.api_threads)
        self._store = open_store(settings)
        self._listener = self._store.listen()
        with self._store.write() as tx:
            self.worker = register_worker(tx, KIND, self._listener.address)
        self.hub = Hub(self._store)
        self.bell = LongPoll(settings.api_threads // 2)
        self._dispatcher = WakeupDispatcher(self._listener)
        self._dispatcher.on("messages", self.bell.ring)
        self._dispatcher.on("events", self.hub.wake)
        self._heartbeat = Loop("heartbeat", self._beat)
        self.app: OpenAPI = create_app(
            Api(
                store=self._store,
                hub=self.hub,
                bell=self.bell,
                supervisor=Supervisor(settings),
                owner=OwnerToken(settings),
                together=GroupCommit(self._store),
                started_at=self._store.clock.now(),
            )
        )

    def start(self) -> None:
        """Begin."""
        self.hub.start()
        self._dispatcher.start()
        self._heartbeat.start()
        # What is there now stays: looked through again and again, it would stop all streams, and
        # in the end for seconds the process itself.
        gc.collect()
        gc.freeze()
        log.info("%s is ready", self.worker)

    def let_go(self) -> None:
        """End every stream and every wait: the process is to stop, and none would end by itself."""
        self.bell.close()
        self.hub.stop()

    def stop(self) -> None:
        """Sign off, when the last request is through."""
        self.let_go()
        self._heartbeat.stop()
        self._dispatcher.stop()
        with self._store.write(durable=False) as tx:
            unregister_worker(tx, self.worker)
        self._store.close()
        log.info("%s has stopped", self.worker)

    def _beat(self) -> float:
        with self._store.write(durable=False) as tx:
            if not report_liveness(tx, self.worker):
                self.worker = register_worker(tx, KIND, self._listener.address)
        metrics.metrics_of(self.app).refresh()
        return float(LIVENESS_SECONDS)
