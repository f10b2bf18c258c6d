"""/healthz and /metrics."""

from __future__ import annotations

from typing import Literal

from flask import Response, current_app
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import BaseModel

from bullpen.api.context import read, require_reach
from bullpen.api.metrics import metrics_of
from bullpen.api.route import blueprint, route
from bullpen.core.access.keys import Scope
from bullpen.core.store.open import HEAD_REVISION

ROUTES = blueprint("health", "Is it alive, and can it work?")


class Alive(BaseModel):
    """It is."""

    ok: Literal[True] = True


class Ready(Alive):
    """Its database can be read, and is of this version."""

    schema_revision: str


@route(ROUTES, "GET", "/healthz", scope=None, answer=Alive)
def alive() -> Alive:
    """Say that the process is alive."""
    return Alive()


@route(ROUTES, "GET", "/readyz", scope=None, answer=Ready)
def ready() -> Ready:
    """Say that the database can be read."""
    with read() as tx:
        tx.fetch("SELECT 1")
    return Ready(schema_revision=HEAD_REVISION)


METRICS_ROUTES = blueprint("metrics", "Numbers for whoever watches over Bullpen.")


TEXT = {
    "description": "Prometheus's text form.",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


@route(METRICS_ROUTES, "GET", "/metrics", scope=Scope.READ, answer=TEXT)
def metrics() -> Response:
    """Tell how the queue and the API fare, in Prometheus's text form."""
    require_reach(None)
    return Response(metrics_of(current_app).text(), content_type=CONTENT_TYPE_PLAIN_0_0_4)
