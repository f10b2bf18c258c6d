"""Is it alive, and can it work: for whoever watches over the process. Asks for no key."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from bullpen.api.context import read
from bullpen.api.route import blueprint, route
from bullpen.core.store.schema import HEAD_REVISION

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
