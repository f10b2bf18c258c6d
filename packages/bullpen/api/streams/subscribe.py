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
from bullpen.api.streams.frames import EncodedEvent, EndReason, StreamProtocol, encode_events
from bullpen.api.streams.hub import Hub
from bullpen.core.access.keys import INVALID, Key
from bullpen.core.errors import BullpenError, NoAccess
from bullpen.core.events.log import id_before_oldest, list_events
from bullpen.core.events.tail import EventTail
from bullpen.core.store.base import Store
from bullpen.core.text import check_text

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

log = logging.getLogger(__name__)

SOCKET = "gunicorn.socket"
"""Where gunicorn has the connection of a request."""

OTHER_DESCRIPTORS = 256
"""File descriptors for the database, the logs and all else."""

MAX_INBOX_MESSAGES = 16
"""While more messages of a client wait, none is read from its socket."""

WAIT_SECONDS = 0.01
MAX_FILTER_CHARS = 2000
PAGE = 100
PAGE_BYTES = 1 << 19
"""A page of so many bytes ends, whatever is in it."""

ENCODED_TOGETHER = 20
PAGE_SECONDS = 30.0
"""A client that takes longer for a page is too slow."""

MAX_PAGE_READERS = 2
"""How many requests read pages at once, so that a mass reconnect does not block the others."""

_page_readers = threading.BoundedSemaphore(MAX_PAGE_READERS)

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
    """Give a copy of the request's socket to the hub; gunicorn will close its own."""
    connection = environ[SOCKET]
    assert isinstance(connection, socket.socket)
    kept = connection.dup()
    try:
        client = hub.admit(kept, wire, key, wanted, limit)
    except BaseException:
        kept.close()
        raise
    # The hub notices a key that is revoked from now on; this check, one revoked just before.
    with store.read() as tx:
        valid = hub.owner.still_valid(tx, key)
    if not valid:
        hub.forget(client)
        raise NoAccess(INVALID)
    return client


def starting_point(hub: Hub, store: Store, since: int | None) -> int:
    """Where a stream begins that resumes after this id; an id that does not exist yet is now.

    If events after it were deleted, it begins after those, which the client sees by the first id.
    """
    now = hub.position
    if since is None:
        return now
    if since <= now:
        return max(since, id_before_oldest(store))
    # Another process may already have sent an event that this one has not read.
    return since if since <= EventTail.from_now(store).position else now


def catch_up(hub: Hub, store: Store, client: Client, position: int) -> None:
    """Write everything after this position to the client, then let it follow live events.

    The thread of the client's own request reads the backlog page by page, each when the client has
    taken the one before, until the hub's recent events cover the rest.
    """
    try:
        while not hub.follow(client, position):
            events, position = _page(store, client.filter, position, hub.position)
            hub.write_to(client, client.filter.frames(client.wire, events))
            if not client.drained.wait(PAGE_SECONDS):
                hub.end(client, EndReason.DROPPED, "it reads too slowly what happened before")
            if client.closing or client.disconnected:
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
    """The wanted events after `position` and up to `upto`, a page at a time."""
    while position < upto:
        events, position = _page(store, wanted, position, upto)
        yield events


def _page(store: Store, wanted: Filter, position: int, upto: int) -> tuple[list[EncodedEvent], int]:
    """The next events, and the position after them."""
    with _page_readers:
        with store.read() as tx:
            events = list_events(tx, wanted.store_filter, position, upto, PAGE)
        encoded: list[EncodedEvent] = []
        while len(encoded) < len(events) and sum(each.size for each in encoded) < PAGE_BYTES:
            encoded += encode_events(store, events[len(encoded) : len(encoded) + ENCODED_TOGETHER])
    more = len(encoded) < len(events) or len(events) == PAGE
    return encoded, encoded[-1].record.id if more else max(position, upto)


class HandoverResponse(Response):
    """The head of an answer whose body the hub writes to the socket."""

    def __init__(self, mimetype: str, then: Callable[[bytes], None]) -> None:
        super().__init__(mimetype=mimetype)
        self._then = then

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Hand the head over, and let gunicorn close its own copy of the socket."""
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
        """Let the hub write it."""
        self._hub.write_to(self.client, [bytes(data)])
        return len(data)

    def close(self) -> None:
        """The library reads no more."""
        self._hub.release(self.client)


def raise_descriptor_limit(count: int) -> None:
    """Raise the limit of open files to this many, or as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + OTHER_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
