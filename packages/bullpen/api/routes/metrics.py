"""Metrics, as Prometheus reads them."""

from __future__ import annotations

from flask import Response, current_app
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from bullpen.api.context import reach
from bullpen.api.metrics import of
from bullpen.api.route import blueprint, route
from bullpen.core.access.key import Scope

METRICS_ROUTES = blueprint("metrics", "Numbers for whoever watches over Bullpen.")


TEXT = {
    "description": "Prometheus's text form.",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


@route(METRICS_ROUTES, "GET", "/metrics", scope=Scope.READ, answer=TEXT)
def metrics() -> Response:
    """Tell how the queue and the API fare, in Prometheus's text form."""
    reach(None)
    return Response(of(current_app).text(), content_type=CONTENT_TYPE_PLAIN_0_0_4)
