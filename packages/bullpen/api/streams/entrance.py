"""How a request becomes a stream."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from bullpen.api.streams.client import Client
from bullpen.api.streams.filter import Filter
from bullpen.api.streams.hub import Hub
from bullpen.api.streams.wire import Wire
from bullpen.core.access.key import Key
from bullpen.core.access.keys import still_valid
from bullpen.core.errors import NoAccess
from bullpen.core.events.tail import EventTail, id_before_oldest
from bullpen.core.store.base import Store

SOCKET = "gunicorn.socket"
"""Where gunicorn has the connection of a request."""


def enter(
    hub: Hub,
    store: Store,
    environ: Mapping[str, object],
    *,
    wire: Wire,
    key: Key,
    wanted: Filter,
    most: int | None = None,
) -> Client:
    """Give a copy of the request's socket to the hub; gunicorn will close its own."""
    connection = environ[SOCKET]
    assert isinstance(connection, socket.socket)
    kept = connection.dup()
    try:
        client = hub.admit(kept, wire, key, wanted, most)
    except BaseException:
        kept.close()
        raise
    # A key that is closed from here on is noticed by the hub; one that was just before, by this.
    with store.read() as tx:
        valid = still_valid(tx, key)
    if not valid:
        hub.forget(client)
        raise NoAccess("the key was closed just now")
    return client


def starting_point(hub: Hub, store: Store, since: int | None) -> int:
    """Where a stream begins that has this id: an id that was never given is now.

    One whose followers were deleted meanwhile begins where they end, and says so by its first id.
    """
    now = hub.position
    if since is None:
        return now
    if since <= now:
        return max(since, id_before_oldest(store))
    # Another process may have shown it already that this one has not come to.
    return since if since <= EventTail.from_now(store).position else now
