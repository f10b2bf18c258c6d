"""/api/message and /api/messages: send, list and manage messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated

from flask import request
from pydantic import BaseModel, Field, JsonValue

from bullpen.api.context import api, caller, check_reach, read, require_reach, write
from bullpen.api.route import APPROVE, PUBLISH, READ, Routes
from bullpen.api.routes.files import check_sendable
from bullpen.api.schemas import (
    Answer,
    CamelAnswer,
    CamelBody,
    Done,
    FilesColumn,
    JsonColumn,
    Number,
    Page,
    Rows,
    StrictBody,
    page_end,
)
from bullpen.core.access.keys import Key
from bullpen.core.errors import (
    BadRequest,
    BullpenError,
    Conflict,
    LaneError,
    NotFound,
    UnknownRecipient,
)
from bullpen.core.ids import MESSAGE_ID
from bullpen.core.inspect.messages import MessageFilter, get_message, list_messages
from bullpen.core.intake import answer_unknown_recipient, submit
from bullpen.core.message import INTERNAL_CHANNELS, Accepted, NewMessage, Priority, ReplyTo
from bullpen.core.models import MESSAGES
from bullpen.core.queue.manage import cancel, drop, hold, resume, retry
from bullpen.core.roster.agents import (
    Agent,
    allowed_roots,
    files_root,
    find_agent,
    load_address_book,
)
from bullpen.core.roster.teams import get_team
from bullpen.core.routing.address import route_text
from bullpen.core.states import MessageState
from bullpen.core.store.transaction import Transaction

routes = Routes("messages", "Messages to agents.")
NO_LIMIT = 1 << 31
MAX_KEY_CHARS = 200
Name = Annotated[str, Field(max_length=200)]
Id = Annotated[str, Field(min_length=1, max_length=200)]
NewId = Annotated[str, Field(pattern=MESSAGE_ID)]

DECISION_ERRORS: tuple[type[BullpenError], ...] = (NotFound, Conflict, LaneError)


class Address(StrictBody):
    """The reply address on a platform."""

    chat: Name = ""
    thread: Name = ""
    message: Name = ""


class NewMessageBody(CamelBody):
    """A message from a person."""

    message: str = Field(description="The text; `@name` in it addresses an agent or a team.")
    agent: Name | None = Field(None, description="The recipient if the text has no `@name`.")
    sender: Name = "API"
    sender_id: Name | None = None
    channel: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")] = "api"
    message_id: NewId | None = Field(
        None, description="Your own id; a second message with the same id is refused."
    )
    files: list[Annotated[str, Field(max_length=4096)]] = Field(
        default_factory=list,
        max_length=64,
        description="Names of uploaded files, or paths below the directories of a recipient.",
    )
    reply_to: Address | None = None
    priority: Priority = Priority.NORMAL
    delay: Number = Field(0, description="Milliseconds before it is due.")
    deadline: Number | None = Field(
        None, description="The time after which it expires if no run has begun."
    )
    payload: dict[str, JsonValue] | None = Field(
        None, description="Data for the worker, passed on unchanged."
    )
    schema_: Name | None = Field(None, alias="schema", description="The payload's type.")


class EnqueuedMessage(CamelAnswer):
    """A stored message; a message to several recipients is stored once for each."""

    message_id: str


class EnqueuedAnswer(CamelAnswer, Done):
    """The stored message."""

    message_id: str
    conversation_id: str
    fresh: bool = Field(
        description="False if a message with this Idempotency-Key was stored before."
    )
    messages: list[EnqueuedMessage]


class MessageAnswer(Answer):
    """A message."""

    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    agent: str
    from_agent: str | None
    files: FilesColumn
    status: MessageState
    retry_count: int
    crash_count: int
    last_error: str | None
    error_kind: str | None
    claimed_by: str | None
    conversation_id: str
    parent_id: str | None
    hop: int
    team_id: str | None
    priority: int
    available_at: int
    deadline: int | None
    payload: JsonColumn
    schema_: str | None = Field(alias="schema")
    created_at: int
    updated_at: int


class MessageList(Rows[MessageAnswer]):
    """Messages."""


class MessagePath(BaseModel):
    """Selects a message."""

    message_id: str = Field(description="The message's id.")


class MessageQuery(Page):
    """Filters of messages."""

    status: MessageState | None = None
    agent: Name | None = None
    channel: Name | None = None
    conversation_id: Id | None = None


class Reason(StrictBody):
    """The reason, for people."""

    reason: Annotated[str, Field(max_length=2000)] = ""


@routes.post("/api/message", PUBLISH, NotFound, Conflict, LaneError)
def send(body: NewMessageBody) -> EnqueuedAnswer:
    """Send a message to agents or teams.

    `@coder …` or `[@coder: …] [#dev: …]` in the text gives the recipients. Without them the message
    goes to `agent`, or to the default agent. If no recipient exists, the response is 404, and the
    sender is also notified on their channel if it has a client. A repeated request with the same
    header `Idempotency-Key` gets the first response again, and nothing is stored.
    """
    new = NewMessage(
        agent=body.agent or "",
        message=body.message,
        channel=body.channel,
        sender=body.sender,
        sender_id=body.sender_id,
        message_id=body.message_id,
        event_ids=_idempotency_keys(),
        files=_check_files(body) if body.files else (),
        reply_to=None if body.reply_to is None else ReplyTo(**body.reply_to.model_dump()),
        priority=body.priority,
        delay=body.delay,
        deadline=body.deadline,
        payload=None if body.payload is None else json.dumps(body.payload),
        schema=body.schema_,
    )
    try:
        accepted = submit_for_key(caller(), new)
    except UnknownRecipient as error:
        if caller().can_reach(None):
            with write() as tx:
                answer_unknown_recipient(tx, new, error)
        raise
    first = accepted[0].message_id
    return EnqueuedAnswer(
        message_id=first,
        conversation_id=first,
        fresh=accepted[0].fresh,
        messages=[EnqueuedMessage(message_id=each.message_id) for each in accepted],
    )


@routes.get("/api/messages", READ)
def messages(query: MessageQuery) -> MessageList:
    """List recent and unfinished messages.

    These are the messages of the last day and older unfinished ones. Newest first; with `since_id`,
    the later ones, oldest first.
    """
    require_reach(query.agent)
    filters = MessageFilter(
        status=query.status,
        agent=query.agent,
        channel=query.channel,
        conversation_id=query.conversation_id,
    )
    last = page_end(MESSAGES, query)
    with read() as tx:
        rows = list_messages(tx, filters, query.since_id, query.limit, upto=last)
    return MessageList.page(rows, query)


@routes.get("/api/messages/<message_id>", READ, NotFound)
def message(path: MessagePath) -> MessageAnswer:
    """Get a message, also an archived one."""
    with read() as tx:
        row = get_message(tx, path.message_id)
    require_reach(row.agent)
    return MessageAnswer.from_row(row)


@routes.post("/api/messages/<message_id>/cancel", APPROVE, *DECISION_ERRORS)
def cancel_message(path: MessagePath, body: Reason) -> Done:
    """Cancel a message, and stop its run if it is processing."""
    return _decide(path, partial(cancel, reason=body.reason or "cancelled"))


@routes.post("/api/messages/<message_id>/hold", APPROVE, *DECISION_ERRORS)
def hold_message(path: MessagePath, body: Reason) -> Done:
    """Hold a pending message until it is resumed."""
    return _decide(path, partial(hold, reason=body.reason or "held"))


@routes.post("/api/messages/<message_id>/let-go", APPROVE, *DECISION_ERRORS)
def let_go_message(path: MessagePath) -> Done:
    """Resume a held message."""
    return _decide(path, resume)


@routes.post("/api/messages/<message_id>/retry", APPROVE, *DECISION_ERRORS)
def retry_message(path: MessagePath) -> Done:
    """Retry a dead, cancelled or expired message."""
    return _decide(path, retry)


@routes.delete("/api/messages/<message_id>", APPROVE, *DECISION_ERRORS)
def drop_message(path: MessagePath) -> Done:
    """Delete a dead, cancelled or expired message permanently."""
    return _decide(path, drop)


def submit_for_key(key: Key, new: NewMessage) -> tuple[Accepted, ...]:
    """Enqueue a message for every agent that it addresses; the key must reach all of them."""
    if new.channel in INTERNAL_CHANNELS:
        # Messages on these channels get no response.
        raise BadRequest(
            f"channel {new.channel!r} is reserved for Bullpen",
            hint="Post in rooms at `/api/chatroom/<team>`, and change heartbeats at "
            "`/api/agents/<id>/heartbeat`.",
        )

    sent = replace(new, key_id=key.bounded_id)

    def store(tx: Transaction) -> tuple[Accepted, ...]:
        accepted = submit(tx, sent)
        if key.agents is not None:
            conversation = MessageFilter(conversation_id=accepted[0].message_id)
            for each in list_messages(tx, conversation, 0, NO_LIMIT):
                check_reach(key, each.agent)
        return accepted

    return api().group_commit.write(store)


def _decide(path: MessagePath, verb: Callable[[Transaction, str], None]) -> Done:
    with write() as tx:
        require_reach(get_message(tx, path.message_id).agent)
        verb(tx, path.message_id)
    return Done()


def _check_files(body: NewMessageBody) -> tuple[str, ...]:
    """Return the real paths of the message's files: uploads, or files of its recipients."""
    with read() as tx:
        roots = [files_root(tx.settings)]
        if any("/" in each for each in body.files):
            for agent in _addressed_agents(tx, body):
                check_reach(caller(), agent.id)
                roots += allowed_roots(tx.settings, agent)
        return check_sendable(tx, body.files, roots)


def _addressed_agents(tx: Transaction, body: NewMessageBody) -> list[Agent]:
    default = body.agent or tx.settings.default_agent
    names: dict[str, None] = {}
    try:
        parts = route_text(body.message, load_address_book(tx), default)
    except UnknownRecipient:
        return []  # `submit` raises it, after it has checked for a repeated request
    for part in parts:
        members = get_team(tx, part.room).members if part.room is not None else (part.agent,)
        names.update(dict.fromkeys(each for each in members if each is not None))
    found = (find_agent(tx, each) for each in names)
    return [each for each in found if each is not None]


def _idempotency_keys() -> tuple[str, ...]:
    """Return the header after the caller's id, because callers may use the same header."""
    header = request.headers.get("Idempotency-Key", "")
    if len(header) > MAX_KEY_CHARS or not (header.isascii() and header.isprintable()):
        raise BadRequest(f"Idempotency-Key must have at most {MAX_KEY_CHARS} printable characters")
    return (f"{caller().id}:{header}",) if header else ()
