"""Prometheus metrics, summed over all API processes."""

from __future__ import annotations

import logging
import os
import shutil
from collections import Counter as Tally
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
from flask import Flask, request
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    disable_created_metrics,
    values,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.values import MultiProcessValue

from bullpen import __version__
from bullpen.api.streams.hub import Hub
from bullpen.core.background import count_live_workers
from bullpen.core.clock import SECOND
from bullpen.core.errors import ReportsError
from bullpen.core.heartbeats.manage import list_heartbeats
from bullpen.core.heartbeats.model import HeartbeatState
from bullpen.core.inspect.channels import list_channels
from bullpen.core.inspect.queue import (
    QueueStatus,
    count_outgoing_by_channel,
    queue_status,
    waiting_since,
)
from bullpen.core.maintenance.jobs import list_job_statuses
from bullpen.core.schedules.model import count_schedules
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from bullpen.reports.manifest import read_manifest
from bullpen.reports.read.catalog import complete_until

log = logging.getLogger(__name__)

EXTENSION = "bullpen.metrics"
PREFIX = "metrics-"
KINDS = ("counter", "histogram", "gauge_livesum")
FILE_BYTES = 2 << 20
"""Allocated in advance, so that counting works on a full disk."""

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The largest buckets are for long polls."""

METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


class Metrics:
    """The metrics of one application."""

    def __init__(self, store: Store, hub: Hub) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._hub = hub
        self._registry = CollectorRegistry()
        self._registry.register(QueueCollector(store))
        shared = self._share(store)
        self._requests = Counter(
            "bullpen_requests",
            "Answered requests.",
            ["method", "endpoint", "status"],
            registry=shared,
        )
        self._seconds = Histogram(
            "bullpen_request_seconds",
            "Response time; for a stream, the time until it began.",
            ["method", "endpoint"],
            buckets=BUCKETS,
            registry=shared,
        )
        self._streams = Gauge(
            "bullpen_streams",
            "Open live streams.",
            multiprocess_mode="livesum",
            registry=shared,
        )

    def _share(self, store: Store) -> CollectorRegistry | None:
        """Return the registry of the counts, shared with the other processes if possible."""
        try:
            self._registry.register(SharedCounts(store.settings))
        except OSError as error:
            log.warning("metrics of this process are not shared with the others: %s", error)
            return self._registry
        return None

    def count(self, status: int, seconds: float) -> None:
        """Count the present request."""
        # Clients must not choose label values, because their number would be unlimited.
        method = request.method if request.method in METHODS else "other"
        endpoint = request.endpoint or "none"
        self._requests.labels(method, endpoint, str(status)).inc()
        self._seconds.labels(method, endpoint).observe(seconds)

    def refresh(self) -> None:
        """Publish the number of open streams of this process."""
        self._streams.set(self._hub.streams)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        self.refresh()
        return generate_latest(self._registry)


def metrics_of(app: Flask) -> Metrics:
    """Return the metrics of this application."""
    metrics = app.extensions[EXTENSION]
    assert isinstance(metrics, Metrics)
    return metrics


class QueueCollector(Collector):
    """Metrics of the queue, read at each scrape from counters and small indexes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> Iterable[Metric]:
        """Describe no metric in advance, because registering must not query the database."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Read everything in one transaction."""
        with self._store.read() as tx:
            metrics = [*_queue(tx), *_channels(tx), *_schedules(tx), *_maintenance(tx)]
        metrics.append(_reports(self._store.settings))
        info = GaugeMetricFamily("bullpen_info", "Always 1.", labels=["version"])
        info.add_metric([__version__], 1)
        return [*metrics, info]


class SharedCounts(Collector):
    """The counts of all processes of one parent, also of stopped ones."""

    def __init__(self, settings: Settings) -> None:
        # The library reads its directory at import, before the directory is known.
        parent = os.getppid()
        self._directory = settings.run / f"{PREFIX}{parent}"
        settings.run.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(settings.run)
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for kind in KINDS:
            _reserve(self._directory / f"{kind}_{os.getpid()}.db")
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(self._directory)
        values.ValueClass = MultiProcessValue()  # type: ignore[no-untyped-call]
        self._files = MultiProcessCollector(None, str(self._directory))  # type: ignore[no-untyped-call]

    def describe(self) -> Iterable[Metric]:
        """Describe no metric in advance."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Return the sums."""
        for path in self._directory.glob("gauge_live*.db"):
            if not psutil.pid_exists(int(path.stem.rpartition("_")[2])):
                path.unlink(missing_ok=True)
        metrics: Iterable[Metric] = self._files.collect()  # type: ignore[no-untyped-call]
        return metrics


def _sweep(directory: Path) -> None:
    """Remove the directories of stopped APIs."""
    for path in directory.glob(f"{PREFIX}*"):
        number = path.name.removeprefix(PREFIX)
        if number.isdecimal() and not psutil.pid_exists(int(number)):
            shutil.rmtree(path, ignore_errors=True)


def _reserve(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, FILE_BYTES)
    finally:
        os.close(descriptor)


def _queue(tx: Transaction) -> list[Metric]:
    status = queue_status(tx)
    since = waiting_since(tx)
    return [
        _messages(status),
        _by(
            "bullpen_oldest_waiting_seconds",
            "Seconds since the next message of the agent became due.",
            "agent",
            {agent: max(0, tx.now - due) / SECOND for agent, due in since.items()},
        ),
        _single("bullpen_dead", "Dead messages.", status.dead),
        _single("bullpen_held", "Held messages.", status.held),
        _by(
            "bullpen_outgoing",
            "Responses that are not delivered yet.",
            "channel",
            count_outgoing_by_channel(tx),
        ),
        _by("bullpen_lanes", "Lanes by state.", "state", _lanes(status)),
    ]


def _channels(tx: Transaction) -> list[Metric]:
    channels = list_channels(tx)
    heard = {each.channel: each.last_message_at for each in channels}
    return [
        _by(
            "bullpen_channel_up",
            "1 if the channel receives and delivers.",
            "channel",
            {each.channel: int(each.works) for each in channels},
        ),
        _by(
            "bullpen_channel_last_message_timestamp_seconds",
            "Time of the last message on the channel.",
            "channel",
            {name: at / SECOND for name, at in heard.items() if at is not None},
        ),
        _by(
            "bullpen_pairing_requests",
            "Pairing requests that wait for approval.",
            "channel",
            {each.channel: each.waiting for each in channels},
        ),
    ]


def _schedules(tx: Transaction) -> list[Metric]:
    heartbeats = Tally(each.state for each in list_heartbeats(tx))
    return [
        _by("bullpen_schedules", "Schedules by state.", "state", count_schedules(tx)),
        _by(
            "bullpen_heartbeats",
            "Agents' heartbeats by state, of those that were ever set up.",
            "state",
            {state.value: heartbeats[state] for state in HeartbeatState},
        ),
    ]


def _maintenance(tx: Transaction) -> list[Metric]:
    jobs = list_job_statuses(tx)
    ran = {each.name: each.last_run_at / SECOND for each in jobs if each.last_run_at is not None}
    failed = {each.name: int(each.last_error is not None) for each in jobs}
    return [
        _by(
            "bullpen_workers",
            "Live worker processes.",
            "kind",
            count_live_workers(tx),
        ),
        _by(
            "bullpen_system_agent_last_run_timestamp_seconds",
            "Time of the last run of a maintenance loop.",
            "name",
            ran,
        ),
        _by(
            "bullpen_system_agent_failed",
            "1 if the last run of a maintenance loop failed.",
            "name",
            failed,
        ),
    ]


def _reports(settings: Settings) -> Metric:
    name = "bullpen_reports_complete_timestamp_seconds"
    family = GaugeMetricFamily(name, "Time until which the reports are complete.")
    with suppress(ReportsError):
        manifest = read_manifest(settings.reports)
        until = None if manifest is None else complete_until(manifest)
        if until is not None:
            family.add_metric([], until / SECOND)
    return family


def _messages(status: QueueStatus) -> Metric:
    family = GaugeMetricFamily(
        "bullpen_messages",
        "Pending and processing messages.",
        labels=["agent", "state"],
    )
    for lane in status.lanes:
        family.add_metric([lane.agent, "pending"], lane.pending)
        family.add_metric([lane.agent, "processing"], lane.processing)
    return family


def _lanes(status: QueueStatus) -> dict[str, int]:
    lanes = Tally(lane.state for lane in status.lanes)
    return {state.value: lanes[state.value] for state in LaneState}


def _by(name: str, doc: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, doc, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _single(name: str, doc: str, value: float) -> Metric:
    return GaugeMetricFamily(name, doc, value=value)
