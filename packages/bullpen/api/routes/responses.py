"""Responses: list, acknowledge, send again or drop responses to people."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BaseModel, Field, JsonValue

from bullpen.api.context import read, require_reach, write
from bullpen.api.route import APPROVE, PUBLISH, READ, Routes
from bullpen.api.routes.files import FileResponse, check_sendable, download
from bullpen.api.routes.messages import Reason
from bullpen.api.schemas import (
    MAX_PAGE_ROWS,
    CamelAnswer,
    CamelBody,
    Cursor,
    Done,
    FilesColumn,
    JsonColumn,
    Page,
    Rows,
    page_end,
)
from bullpen.core.answers.attachments import response_roots
from bullpen.core.errors import Conflict, IllegalMove, UnknownAgent, UnknownFile, UnknownResponse
from bullpen.core.inspect.responses import (
    ResponseFilter,
    ResponseRecord,
    get_response,
    list_deliverable,
    list_responses,
)
from bullpen.core.intake import require_space
from bullpen.core.message import Answer
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import decode_texts
from bullpen.core.outbox.manage import ack_response, drop_response, retry_response
from bullpen.core.outbox.write import send_to_person
from bullpen.core.roster.agents import allowed_roots, files_root, get_agent
from bullpen.core.states import ResponseState
from bullpen.core.store.transaction import Transaction

routes = Routes("responses", "Responses to people.")

Name = Annotated[str, Field(max_length=200)]
Short = Annotated[str, Field(max_length=40)]
"""Longer than the name of any agent or channel."""


class ResponseAnswer(CamelAnswer):
    """A response to one person on one channel."""

    id: int
    channel: str
    sender: str
    sender_id: str | None
    message: str
    original_message: str
    timestamp: int = Field(validation_alias="created_at")
    message_id: str
    agent: str
    files: FilesColumn
    metadata: JsonColumn
    status: ResponseState
    conversation_id: str
    seq: int = Field(description="The position among the responses to this message.")
    delivery_attempts: int
    parts_sent: int
    possible_duplicate: bool = Field(description="Whether it was sent before and may have arrived.")
    available_at: int
    expires_at: int
    last_error: str | None
    acked_at: int | None


class ResponseList(Rows[ResponseAnswer]):
    """Responses to people."""


class ResponseQuery(Page):
    """Filters of responses."""

    limit: int = Field(20, ge=1, le=MAX_PAGE_ROWS, description="Maximum number of responses.")
    status: ResponseState | None = None
    channel: Short | None = None
    agent: Short | None = None
    message_id: Name | None = None
    conversation_id: Name | None = None


class PendingQuery(BaseModel):
    """Selects pending responses of a channel."""

    channel: Short = Field(min_length=1)
    limit: int = Field(
        MAX_PAGE_ROWS, ge=1, le=MAX_PAGE_ROWS, description="Maximum number of responses."
    )
    since_id: Cursor = Field(0, description="Only responses with a higher number.")


class NewResponseBody(CamelBody):
    """A message to a person that is not a response to a message."""

    channel: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    sender: Name = Field(min_length=1, description="The recipient's name.")
    message: str
    sender_id: Name | None = Field(None, description="The recipient's id on the channel.")
    agent: Name | None = Field(None, description="The agent that sends it.")
    files: list[Annotated[str, Field(max_length=4096)]] = Field(
        default_factory=list,
        max_length=64,
        description="Names of uploaded files, or paths below the agent's directories.",
    )
    metadata: dict[str, JsonValue] | None = None


class NewResponseAnswer(CamelAnswer, Done):
    """The stored response."""

    message_id: str


class ResponsePath(BaseModel):
    """Selects a response."""

    response_id: str = Field(max_length=100, description="The response's number.")


class ResponseFilePath(ResponsePath):
    """Selects a file of a response."""

    number: str = Field(max_length=100, description="The position in `files`, from 0.")


@routes.get("/api/responses", READ)
def responses(query: ResponseQuery) -> ResponseList:
    """List recent and undelivered responses.

    These are the responses of the last day and older undelivered ones. Newest first; with
    `since_id`, the later ones, oldest first. A key for some agents must give one of them as
    `agent`.
    """
    require_reach(query.agent)
    filters = ResponseFilter(
        status=query.status,
        channel=query.channel,
        agent=query.agent,
        message_id=query.message_id,
        conversation_id=query.conversation_id,
    )
    last = page_end(RESPONSES, query)
    with read() as tx:
        rows = list_responses(tx, filters, query.since_id, query.limit, upto=last)
    return ResponseList.page(rows, query)


@routes.get("/api/responses/pending", READ)
def pending(query: PendingQuery) -> ResponseList:
    """List the responses to deliver on a channel now, oldest first.

    Responses that one of Bullpen's channel clients has leased are not listed.
    """
    require_reach(None)
    with read() as tx:
        rows = list_deliverable(tx, query.channel, query.since_id, query.limit)
    return ResponseList.page(rows, Page(limit=query.limit, since_id=query.since_id))


@routes.post("/api/responses", PUBLISH, UnknownAgent, UnknownFile)
def write_proactively(body: NewResponseBody) -> NewResponseAnswer:
    """Send a message to a person, without a message to answer."""
    require_reach(body.agent)
    with write() as tx:
        require_space(tx, len(body.message))
        settings = tx.settings
        roots = (
            allowed_roots(settings, get_agent(tx, body.agent))
            if body.agent
            else (files_root(settings),)
        )
        answer = Answer(
            message=body.message,
            files=check_sendable(tx, body.files, roots),
            metadata=None if body.metadata is None else json.dumps(body.metadata),
        )
        message_id = send_to_person(
            tx,
            answer,
            channel=body.channel,
            sender=body.sender,
            sender_id=body.sender_id,
            agent=body.agent or "",
        )
    return NewResponseAnswer(message_id=message_id)


@routes.get("/api/responses/<response_id>", READ, UnknownResponse)
def response(path: ResponsePath) -> ResponseAnswer:
    """Get a response, also an archived one."""
    with read() as tx:
        return ResponseAnswer.from_row(_get_reachable(tx, path))


@routes.get("/api/responses/<response_id>/files/<number>", READ, UnknownResponse, UnknownFile)
def response_file(path: ResponseFilePath) -> FileResponse:
    """Download a file of a response."""
    with read() as tx:
        row = _get_reachable(tx, path)
        roots = response_roots(tx, row.agent)
    files = decode_texts(row.files)
    index = int(path.number) if path.number.isascii() and path.number.isdecimal() else len(files)
    if index >= len(files):
        raise UnknownFile(f"response {row.id} has no file {path.number[:60]!r}")
    return download(files[index], roots)


@routes.post("/api/responses/<response_id>/ack", PUBLISH, UnknownResponse, Conflict)
def ack(path: ResponsePath) -> Done:
    """Acknowledge a response: the person has read it.

    A repeated acknowledgement changes nothing.
    """
    with write() as tx:
        row = _get_reachable(tx, path)
        try:
            ack_response(tx, row.id)
        except (IllegalMove, UnknownResponse):
            if _get_reachable(tx, path).status != ResponseState.ACKED:
                raise
    return Done()


@routes.post("/api/responses/<response_id>/send-again", APPROVE, UnknownResponse, Conflict)
def deliver_again(path: ResponsePath) -> Done:
    """Send a dead or unknown response again."""
    with write() as tx:
        retry_response(tx, _get_reachable(tx, path).id)
    return Done()


@routes.post("/api/responses/<response_id>/give-up", APPROVE, UnknownResponse, Conflict)
def set_aside(path: ResponsePath, body: Reason) -> Done:
    """Drop a response: it is not delivered."""
    with write() as tx:
        drop_response(tx, _get_reachable(tx, path).id, body.reason or "dropped")
    return Done()


def _get_reachable(tx: Transaction, path: ResponsePath) -> ResponseRecord:
    row = get_response(tx, path.response_id)
    require_reach(row.agent)
    return row
