"""A request becomes a stream: query, filter, and the hand-over of its socket to the hub."""

from __future__ import annotations

import logging
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from email.utils import formatdate
from typing import TYPE_CHECKING, Annotated

from flask import Response
from pydantic import BaseModel, Field

from bullpen.api.schemas import Cursor
from bullpen.api.streams.client import Client, Filter
from bullpen.api.streams.encode import EncodedEvent, EndReason, StreamProtocol, encode_events
from bullpen.api.streams.hub import Hub
from bullpen.core.access.keys import Key, still_valid
from bullpen.core.errors import BullpenError, NoAccess
from bullpen.core.events.log import list_events
from bullpen.core.events.tail import EventTail, id_before_oldest
from bullpen.core.store.base import Store
from bullpen.core.text import check_text

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

BESIDES = 256
"""For the database, the logs, and whatever else a process has open."""


def raise_descriptor_limit(count: int) -> None:
    """Ask for so many, or for as many as there may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + BESIDES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


SOCKET = "gunicorn.socket"
"""Where gunicorn has the connection of a request."""


def open_stream(
    hub: Hub,
    store: Store,
    environ: Mapping[str, object],
    *,
    wire: StreamProtocol,
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


class HandoverResponse(Response):
    """The head of an answer; what comes after it is written by whoever has the socket."""

    def __init__(self, mimetype: str, then: Callable[[bytes], None]) -> None:
        super().__init__(mimetype=mimetype)
        self._then = then

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Give the head away, and let gunicorn close its own copy of the socket in silence."""
        self.headers.pop("Content-Length", None)
        self.headers["Date"] = formatdate(usegmt=True)
        self.headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {text}" for name, text in self.headers)]
        self._then("\r\n".join([*lines, "", ""]).encode("latin-1"))
        raise StopIteration


# The socket as flask-sock sees it: it reads by itself, and the hub writes.
#
# So no frame is written into another, whoever sends it, and nobody waits for a client that is slow.

MAX_INBOX_MESSAGES = 16
"""So many messages of a client may wait for their turn; it is not read from before."""

WAIT_SECONDS = 0.01


class HubSocket:
    """What `simple_websocket` asks of a socket."""

    def __init__(self, hub: Hub, client: Client) -> None:
        self.client = client
        self.inbox: list[object] = []
        """What was read, and is not done yet; the library's own list."""
        self._hub = hub

    def fileno(self) -> int:
        """For the library's selector."""
        return self.client.socket.fileno()

    def recv(self, size: int) -> bytes:
        """Read, unless there is more than enough to do; at the end only whether it is the end."""
        while len(self.inbox) > MAX_INBOX_MESSAGES and not self.client.over:
            time.sleep(WAIT_SECONDS)
        data = self.client.socket.recv(size)
        while data and self.client.over:
            data = self.client.socket.recv(size)
        return data

    def send(self, data: bytes) -> int:
        """Let the hub write it."""
        self._hub.write_to(self.client, [bytes(data)])
        return len(data)

    def close(self) -> None:
        """The library reads no more."""
        self._hub.release(self.client)


MAX_FILTER_CHARS = 2000

Name = Annotated[str, Field(max_length=200)]

EventTypes = Annotated[
    str | None,
    Field(
        max_length=MAX_FILTER_CHARS,
        description="names of events, ours or the reference's, with commas between them",
    ),
]


class StreamQuery(BaseModel):
    """Which events, and from where."""

    since_id: Cursor | None = Field(
        None, description="everything after this id first; without it, from now on"
    )
    types: EventTypes = None
    agent: Name | None = None
    conversation_id: Name | None = None
    team: Name | None = Field(None, description="only what is about this team, or its messages")

    def filter(self, key: Key) -> Filter:
        """What it comes to for this key."""
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
    """A filter for this key, of what can be text in a database."""
    for text in (*(types or ()), agent, conversation_id, team):
        check_text(text or "", MAX_FILTER_CHARS, "what is asked for")
    return Filter(
        types=types,
        agent=agent,
        conversation_id=conversation_id,
        team=team,
        reach=key.agents,
    )


def split_names(text: str | None) -> frozenset[str] | None:
    """The names between the commas; None is all."""
    if text is None:
        return None
    return frozenset(each.strip() for each in text.split(",") if each.strip()) or None


# What happened before: page by page, until the rest is at hand and a client can follow.
#
# It is read by the thread of the client's own request; the next page when the last was taken.

log = logging.getLogger(__name__)

PAGE = 100
PAGE_SECONDS = 30.0
"""A client that takes longer for a page is too slow."""

MAX_PAGE_READERS = 2
"""So many requests read pages at once: many that come back together do not stop all others."""

_page_readers = threading.BoundedSemaphore(MAX_PAGE_READERS)


def catch_up(hub: Hub, store: Store, client: Client, position: int) -> None:
    """Give it everything after this position, and then whatever happens."""
    try:
        while not hub.follow(client, position):
            events, position = _page(store, client.filter, position, hub.position)
            hub.write_to(client, client.filter.frames(client.wire, events))
            if not client.drained.wait(PAGE_SECONDS):
                hub.end(client, EndReason.DROPPED, "it reads too slowly what happened before")
            if client.over or client.gone:
                return
    except BullpenError as error:
        log.warning("a stream ends: %s (%s)", error, error.hint)
        hub.end(client, EndReason.FAILED, "the events cannot be read")
    except Exception:
        log.exception("a stream failed")
        hub.end(client, EndReason.FAILED, "something in Bullpen failed")


def backlog_pages(
    store: Store, wanted: Filter, position: int, upto: int
) -> Iterator[list[EncodedEvent]]:
    """Everything that is wanted after this position and up to that, a page at a time."""
    while position < upto:
        events, position = _page(store, wanted, position, upto)
        yield events


def _page(store: Store, wanted: Filter, position: int, upto: int) -> tuple[list[EncodedEvent], int]:
    """The next events, and the position after them."""
    with _page_readers:
        with store.read() as tx:
            found = list_events(tx, wanted.wanted, position, upto, PAGE)
        shown = encode_events(store, found)
    return shown, found[-1].id if len(found) == PAGE else max(position, upto)
