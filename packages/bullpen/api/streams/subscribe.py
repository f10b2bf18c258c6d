"""Turns a request into a stream: query, filter, and the hand-over of its socket to the hub."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from email.utils import formatdate
from typing import TYPE_CHECKING, Annotated

from flask import Response
from pydantic import BaseModel, Field

from bullpen.api.schemas import Cursor
from bullpen.api.streams.client import Client, Filter
from bullpen.api.streams.frames import StreamProtocol
from bullpen.api.streams.hub import Hub
from bullpen.core.access.keys import INVALID, Key
from bullpen.core.errors import NoAccess
from bullpen.core.events.log import id_before_oldest
from bullpen.core.events.tail import EventTail
from bullpen.core.store.base import Store
from bullpen.core.text import check_text

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

SOCKET = "gunicorn.socket"
"""The key of a request's connection in gunicorn's environment."""

OTHER_DESCRIPTORS = 256
"""File descriptors for the database, the logs and everything else."""

MAX_INBOX_MESSAGES = 16
"""While more messages of a client are unhandled, its socket is not read."""

WAIT_SECONDS = 0.01
MAX_FILTER_CHARS = 2000
Name = Annotated[str, Field(max_length=200)]

EventTypes = Annotated[
    str | None,
    Field(
        max_length=MAX_FILTER_CHARS,
        description="Types of events, separated by commas, under Bullpen's or TinyAGI's names.",
    ),
]


class StreamQuery(BaseModel):
    """Filters of a stream, and its position."""

    since_id: Cursor | None = Field(
        None, description="First send the events after this id. Without it, begin now."
    )
    types: EventTypes = None
    agent: Name | None = None
    conversation_id: Name | None = None
    team: Name | None = Field(None, description="Only events of this team or its messages.")

    def filter(self, key: Key) -> Filter:
        """The filter of this query for this key."""
        return make_filter(
            key,
            types=split_names(self.types),
            agent=self.agent,
            conversation_id=self.conversation_id,
            team=self.team,
        )


def make_filter(
    key: Key,
    *,
    types: frozenset[str] | None,
    agent: str | None,
    conversation_id: str | None,
    team: str | None,
) -> Filter:
    """A filter for this key; text that no database can store is refused."""
    for text in (*(types or ()), agent, conversation_id, team):
        check_text(text or "", MAX_FILTER_CHARS, "the filter")
    return Filter(
        types=types,
        agent=agent,
        conversation_id=conversation_id,
        team=team,
        reach=key.agents,
    )


def split_names(text: str | None) -> frozenset[str] | None:
    """Return the names between the commas; None means all."""
    if text is None:
        return None
    return frozenset(each.strip() for each in text.split(",") if each.strip()) or None


def open_stream(
    hub: Hub,
    store: Store,
    environ: Mapping[str, object],
    *,
    wire: StreamProtocol,
    key: Key,
    wanted: Filter,
    limit: int | None = None,
) -> Client:
    """Give a copy of the request's socket to the hub; gunicorn closes its own."""
    connection = environ[SOCKET]
    assert isinstance(connection, socket.socket)
    kept = connection.dup()
    try:
        client = hub.admit(kept, wire, key, wanted, limit)
    except BaseException:
        kept.close()
        raise
    # The hub detects a key that is revoked from now on; this check, a key revoked just before.
    with store.read() as tx:
        valid = hub.owner.still_valid(tx, key)
    if not valid:
        hub.forget(client)
        raise NoAccess(INVALID)
    return client


def starting_point(hub: Hub, store: Store, since: int | None) -> int:
    """Return the position of a stream that resumes after this id; an unknown later id means now.

    If events after it were deleted, the stream begins after those; the client sees this by the
    first id.
    """
    now = hub.position
    if since is None:
        return now
    if since <= now:
        return max(since, id_before_oldest(store))
    # Another process may already have sent an event that this one has not read.
    return since if since <= EventTail.from_now(store).position else now


class HandoverResponse(Response):
    """The head of a response whose body the hub writes to the socket."""

    def __init__(self, mimetype: str, then: Callable[[bytes], None]) -> None:
        super().__init__(mimetype=mimetype)
        self._then = then

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Hand over the head, and make gunicorn close its own copy of the socket."""
        self.headers.pop("Content-Length", None)
        self.headers["Date"] = formatdate(usegmt=True)
        self.headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {text}" for name, text in self.headers)]
        self._then("\r\n".join([*lines, "", ""]).encode("latin-1"))
        raise StopIteration


class HubSocket:
    """The socket as `simple_websocket` sees it: the library reads, and the hub writes.

    So frames of the two never mix, and no thread waits for a slow client.
    """

    def __init__(self, hub: Hub, client: Client) -> None:
        self.client = client
        self.inbox: list[object] = []
        """Messages that were read and not handled yet; the library's own list."""
        self._hub = hub

    def fileno(self) -> int:
        """For the library's selector."""
        return self.client.socket.fileno()

    def recv(self, size: int) -> bytes:
        """Read, unless too many messages wait; while closing, read only to see the end."""
        while len(self.inbox) > MAX_INBOX_MESSAGES and not self.client.closing:
            time.sleep(WAIT_SECONDS)
        data = self.client.socket.recv(size)
        while data and self.client.closing:
            data = self.client.socket.recv(size)
        return data

    def send(self, data: bytes) -> int:
        """Pass the data to the hub."""
        self._hub.write_to(self.client, [bytes(data)])
        return len(data)

    def close(self) -> None:
        """Release the client, because the library has stopped reading."""
        self._hub.release(self.client)


def raise_descriptor_limit(count: int) -> None:
    """Raise the limit of open files to this many, or as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + OTHER_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
