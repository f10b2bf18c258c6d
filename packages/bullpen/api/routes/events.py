"""Events, as a list of past ones and as a live stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from flask import Response, request
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from bullpen.api.context import api, caller, read, require_reach
from bullpen.api.route import READ, Described, Routes, json_response
from bullpen.api.schemas import Answer, Page, Rows, next_cursor
from bullpen.api.streams.client import Filter, add_own_names
from bullpen.api.streams.documents import encode, event_documents
from bullpen.api.streams.frames import SSE
from bullpen.api.streams.replay import backlog_pages
from bullpen.api.streams.subscribe import (
    EventTypes,
    HandoverResponse,
    Name,
    StreamQuery,
    open_stream,
    split_names,
    starting_point,
)
from bullpen.core.access.keys import Key
from bullpen.core.access.owner import OwnerToken
from bullpen.core.events.log import EventFilter, id_before_oldest, list_events
from bullpen.core.events.tail import EventTail
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Cut

routes = Routes("events", "Events, in order.")

MIMETYPE = "text/event-stream"

StreamResponse = Annotated[
    Response,
    Described(
        "Server-sent events: `id`, `event`, and `data`, which is one JSON object.",
        MIMETYPE,
        {
            "type": "object",
            "required": ["event", "data"],
            "properties": {
                "id": {"type": "string"},
                "event": {"type": "string"},
                "data": {"type": "string", "contentMediaType": "application/json"},
                "retry": {"type": "integer"},
            },
        },
    ),
]

ENCODED_TOGETHER = 20
"""The number of events that are encoded at once; the list may be cut after each such group."""

HEADERS = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
"""A proxy that buffers the stream would delay events."""


class EventQuery(Page):
    """Filters of events."""

    types: EventTypes = None
    agent: Name | None = None
    conversation_id: Name | None = None
    message_id: Name | None = None


class EventAnswer(Answer):
    """An event, with additional fields about its agent, message and response."""

    model_config = ConfigDict(extra="allow")

    id: int
    type: str
    timestamp: int
    agent: str | None
    conversation_id: str | None
    message_id: str | None
    data: dict[str, JsonValue]


class EventList(Rows[EventAnswer]):
    """Events."""


class LastSeen(BaseModel):
    """The header that a reconnecting client, such as a browser, sends."""

    id: str | None = Field(
        None,
        alias="Last-Event-ID",
        pattern=r"^[0-9]{0,19}$",
        description="Send the events after this id first; takes precedence over `since_id`.",
    )


class FollowQuery(StreamQuery):
    """Filters of a stream."""

    follow: bool = Field(True, description="False: send the stored events and end.")


@routes.get("/api/events", READ)
def events(query: EventQuery) -> Annotated[Response, EventList]:
    """List events.

    Newest first; with `since_id`, the later ones, oldest first. The list has no gaps: it waits for
    events that are not committed yet.
    """
    if query.agent is not None:
        require_reach(query.agent)
    types = split_names(query.types)
    filters = EventFilter(
        types=None if types is None else add_own_names(types),
        agents=caller().agents if query.agent is None else frozenset({query.agent}),
        conversation_id=query.conversation_id,
        message_id=query.message_id,
    )
    upto = EventTail.from_now(api().store).position
    with read() as tx:
        rows = list_events(tx, filters, query.since_id, upto, query.limit)
    documents: list[bytes] = []
    while len(documents) < len(rows) and sum(map(len, documents)) < api().settings.page_bytes:
        some = rows[len(documents) : len(documents) + ENCODED_TOGETHER]
        documents += map(encode, event_documents(api().store, some))
    if len(documents) < len(rows):
        rows = Cut(rows[: len(documents)])
    return json_response(b"[" + b",".join(documents) + b"]", next_cursor(rows, query))


@routes.get("/api/events/stream", READ)
def stream(header: LastSeen, query: FollowQuery) -> StreamResponse:
    """Stream events as server-sent events (SSE).

    The first event is `connected`. A client that reconnects with the last id gets every event since
    then, once and in order. Many events are sent twice: first under TinyAGI's name without an id,
    then under Bullpen's name.
    """
    if query.agent is not None:
        require_reach(query.agent)
    hub, store, wanted = api().hub, api().store, query.filter(caller())
    since = int(header.id) if header.id else query.since_id
    if request.method == "HEAD":
        return Response(mimetype=MIMETYPE, headers=HEADERS)
    if not query.follow:
        frames = _backlog(store, hub.owner, caller(), wanted, since)
        return Response(frames, mimetype=MIMETYPE, headers=HEADERS)
    position = starting_point(hub, store, since)
    client = open_stream(hub, store, request.environ, wire=SSE, key=caller(), wanted=wanted)

    def begin(head: bytes) -> None:
        hub.write_to(client, [head, SSE.hello(position, store.clock.now())])
        api().replays.add(client, position)

    response = HandoverResponse(MIMETYPE, begin)
    response.headers.update(HEADERS)
    return response


def _backlog(
    store: Store, owner: OwnerToken, key: Key, wanted: Filter, since: int | None
) -> Iterator[bytes]:
    """Yield the stored events after this id while the key is valid; none without an id."""
    upto = EventTail.from_now(store).position
    position = upto if since is None else min(max(since, id_before_oldest(store)), upto)
    yield SSE.hello(position, store.clock.now())
    for shown in backlog_pages(store, wanted, position, upto):
        with store.read() as tx:
            if not owner.still_valid(tx, key):
                break
        yield b"".join(wanted.frames(SSE, shown))
