"""Claims: how workers outside of Bullpen take messages, answer them, and give them back."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated

from flask import Response
from pydantic import Field, JsonValue

from bullpen.api.context import api, caller, read, require_reach, require_valid, write
from bullpen.api.long_poll import client_gone
from bullpen.api.route import CLAIM, Routes, as_json
from bullpen.api.routes.files import may_attach, resolve_uploads
from bullpen.api.schemas import Answer, Done, FilesColumn, JsonColumn, StrictBody
from bullpen.core.answers.complete import complete, fail
from bullpen.core.answers.leases import by_observation, claim_for_worker, has_work
from bullpen.core.clock import SECOND
from bullpen.core.errors import StaleToken, UnknownAgent
from bullpen.core.ids import agent_of
from bullpen.core.message import MAX_USAGE, NO_USAGE, ErrorKind, Failure, RunOutput, Usage
from bullpen.core.queue.claim import extend, get_claim, record_start
from bullpen.core.queue.fail import release
from bullpen.core.roster.agents import allowed_roots, get_agent, get_provider_name
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_line, sanitise_text

routes = Routes("claims", "Outside workers: claim, extend, complete, fail, release.")

DAY_SECONDS = 86_400
MAX_MESSAGES = 256
MAX_NAME_BYTES = 1000
EMPTY_ANSWER = "it answered nothing at all"

Name = Annotated[str, Field(min_length=1, max_length=200)]
Token = Annotated[str, Field(max_length=200, description="the claim's token")]
Lease = Annotated[
    int,
    Field(
        ge=1,
        le=DAY_SECONDS,
        description="seconds that the claim lasts from now; the setting `lease_seconds` by default",
    ),
]
Tokens = Annotated[int, Field(ge=0, le=MAX_USAGE)]


class ClaimBody(StrictBody):
    """Whose messages, and for how long."""

    agent: Name = Field(description="whose messages; one run at a time answers them")
    worker: Name = Field("outside", description="who takes them, as people see it")
    limit: int | None = Field(
        None,
        ge=1,
        le=MAX_MESSAGES,
        description="how many messages one run answers; the setting `claim_limit` by default",
    )
    lease: Lease | None = None
    wait: float = Field(
        0,
        ge=0,
        le=60,
        allow_inf_nan=False,
        description="seconds to wait for a message if there is none",
    )


class ClaimedMessage(Answer):
    """A message that is to be answered."""

    message_id: str
    message: str
    files: FilesColumn
    sender: str
    sender_id: str | None
    channel: str
    conversation_id: str
    parent_id: str | None
    from_agent: str | None
    team_id: str | None
    hop: int
    priority: int
    deadline: int | None
    payload: JsonColumn
    schema_: str | None = Field(alias="schema")
    retry_count: int
    created_at: int


class ClaimAnswer(Answer):
    """A claim: one answer is for all of its messages. Without a token there was nothing."""

    token: str | None = None
    lease_expires_at: int | None = None
    messages: list[ClaimedMessage] = Field(
        default_factory=list, description="the first is the one that is answered"
    )


class ExtendClaimBody(StrictBody):
    """The run goes on."""

    token: Token
    lease: Lease | None = None


class ExtendClaimAnswer(Done):
    """Until when it may."""

    lease_expires_at: int


class UsageBody(StrictBody):
    """What did it, and what it took."""

    provider: str | None = Field(None, max_length=200)
    model: str | None = Field(None, max_length=200)
    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cost: float = Field(0, ge=0, le=MAX_USAGE, allow_inf_nan=False, description="dollars")


class CompleteClaimBody(StrictBody):
    """What the agent says."""

    token: Token
    response: str = Field("", description="`[@coder: …]` and other tags in it are followed")
    files: list[Annotated[str, Field(max_length=4096)]] = Field(
        default_factory=list,
        max_length=64,
        description="names of uploaded files, or paths below the agent's directories",
    )
    usage: UsageBody | None = None
    metadata: dict[str, JsonValue] | None = Field(None, description="goes with the response")


class CompleteClaimAnswer(Done):
    """It is answered, or failed because there was nothing in the answer."""

    status: str = Field(description="`completed`, or `failed` for an answer with nothing in it")


class FailClaimBody(StrictBody):
    """Why there is no answer."""

    token: Token
    error: str
    kind: ErrorKind = Field(ErrorKind.RETRYABLE, description="decides what becomes of the messages")
    retry_after: float | None = Field(
        None,
        ge=0,
        le=7 * DAY_SECONDS,
        allow_inf_nan=False,
        description="seconds to wait before the next try",
    )
    usage: UsageBody | None = None


class ReleaseClaimBody(StrictBody):
    """Nobody is to blame."""

    token: Token
    reason: str = Field("released by its worker", max_length=2000)


@routes.post("/api/queue/claim", CLAIM, UnknownAgent)
def claim(body: ClaimBody) -> Annotated[Response, ClaimAnswer]:
    """Take what waits for an agent; with `wait`, as soon as something does.

    One claim at a time has an agent's messages: the oldest, and those that one answer is for as
    well. It is over when its lease is, unless it was extended, and then the next claim has them.
    An agent of the provider `http` is left to outside workers; of another one's messages the
    processors take some as well.
    """
    require_reach(body.agent)
    found = api().long_poll.wait_for(lambda: _try_claim(body), body.wait, caller().id)
    return as_json(ClaimAnswer()) if found is None else found


@routes.post("/api/queue/extend", CLAIM, StaleToken)
def extend_claim(body: ExtendClaimBody) -> ExtendClaimAnswer:
    """Go on for longer. 409 `stale_token`: stop the run, the messages are another one's now."""
    _require_claim_reach(body.token)
    lease = None if body.lease is None else body.lease * SECOND
    with write(durable=False) as tx:
        return ExtendClaimAnswer(lease_expires_at=extend(tx, body.token, lease))


@routes.post("/api/queue/complete", CLAIM, StaleToken, UnknownAgent)
def complete_claim(body: CompleteClaimBody) -> CompleteClaimAnswer:
    """Answer the claim's messages.

    What the tags say is done: handoffs, room posts, files. A file leaves only from below the
    agent's directories or that of uploads; of another one the person is told that it was not
    sent. An answer with nothing in it is a failure that is tried again.
    """
    _require_claim_reach(body.token)
    usage = _usage(body.usage)
    with write() as tx:
        if not body.response.strip() and not body.files:
            failure = Failure(kind=ErrorKind.RETRYABLE, error=EMPTY_ANSWER, usage=usage)
            fail(tx, body.token, failure)
            return CompleteClaimAnswer(status="failed")
        _complete(tx, body, usage)
    return CompleteClaimAnswer(status="completed")


@routes.post("/api/queue/fail", CLAIM, StaleToken)
def fail_claim(body: FailClaimBody) -> Done:
    """Say that there is no answer, and why; the kind decides what becomes of the messages.

    `retryable` ones are tried again after a while, `rate_limit` makes the whole agent wait,
    `permanent` is dead at once, `auth`, `quota` and `setup` pause the agent and tell the owner,
    `needs_person` holds the messages. Of a claim of several messages none is dead or held by that:
    each is tried alone.
    """
    _require_claim_reach(body.token)
    after = None if body.retry_after is None else round(body.retry_after * SECOND)
    failure = Failure(
        kind=body.kind, error=sanitise_text(body.error), retry_after=after, usage=_usage(body.usage)
    )
    with write() as tx:
        fail(tx, body.token, failure)
    return Done()


@routes.post("/api/queue/release", CLAIM, StaleToken)
def release_claim(body: ReleaseClaimBody) -> Done:
    """Give the messages back as they were; no try is counted."""
    _require_claim_reach(body.token)
    with write() as tx:
        release(tx, body.token, sanitise_text(body.reason))
    return Done()


def _try_claim(body: ClaimBody) -> Response | None:
    if client_gone():
        # A claim that its worker never receives blocks the lane for a lease.
        return as_json(ClaimAnswer())
    has_ended = by_observation(api().store)
    with read() as tx:
        if not has_work(tx, body.agent, has_ended):
            return None
    lease = None if body.lease is None else body.lease * SECOND
    with write(durable=False) as tx:
        # The request may have waited for a minute, and its key may have been revoked meanwhile.
        require_valid(tx)
        claim = claim_for_worker(
            tx, body.worker, body.agent, limit=body.limit, lease=lease, has_ended=has_ended
        )
        if claim is not None:
            record_start(tx, claim, get_provider_name(tx, claim.agent))
        # Within the transaction: a claim that the worker cannot be told of is not made.
        return None if claim is None else as_json(ClaimAnswer.from_row(claim))


def _complete(tx: Transaction, body: CompleteClaimBody, usage: Usage) -> None:
    claim = get_claim(tx, body.token)
    agent = get_agent(tx, claim.agent)
    output = RunOutput(
        text=body.response,
        files=resolve_uploads(body.files),
        metadata=None if body.metadata is None else json.dumps(body.metadata),
        usage=usage,
    )
    roots = allowed_roots(tx.settings, agent)
    complete(tx, claim, output, roots, partial(may_attach, tx, caller()))


def _require_claim_reach(token: str) -> None:
    """Refuse a key that does not reach the agent of this claim."""
    require_reach(agent_of(token))


def _usage(body: UsageBody | None) -> Usage:
    if body is None:
        return NO_USAGE
    for text in (body.provider, body.model):
        check_line(text or "", MAX_NAME_BYTES, "the provider or the model")
    return Usage(**body.model_dump())
