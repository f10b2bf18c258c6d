"""/healthz and /metrics."""

from __future__ import annotations

from typing import Annotated, Literal

from flask import Response, current_app
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from bullpen.api.context import read, require_reach
from bullpen.api.metrics import metrics_of
from bullpen.api.route import NO_SCOPE, READ, Described, Routes
from bullpen.api.schemas import Answer
from bullpen.core.store.open import HEAD_REVISION

routes = Routes("health", "Health checks.")


class Alive(Answer):
    """The process is alive."""

    ok: Literal[True] = True


class Ready(Alive):
    """The database can be read and has this version's schema."""

    schema_revision: str


@routes.get("/healthz", NO_SCOPE)
def alive() -> Alive:
    """Check that the process is alive."""
    return Alive()


@routes.get("/readyz", NO_SCOPE)
def ready() -> Ready:
    """Check that the database can be read."""
    with read() as tx:
        tx.fetch("SELECT 1")
    return Ready(schema_revision=HEAD_REVISION)


metrics_routes = Routes("metrics", "Metrics for Prometheus.")


TextResponse = Annotated[
    Response, Described("Prometheus's text format.", "text/plain", {"type": "string"})
]


@metrics_routes.get("/metrics", READ)
def metrics() -> TextResponse:
    """Get metrics of the queue and the API in Prometheus's text format."""
    require_reach(None)
    return Response(metrics_of(current_app).text(), content_type=CONTENT_TYPE_PLAIN_0_0_4)
