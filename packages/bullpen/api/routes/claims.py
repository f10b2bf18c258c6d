"""Claims: external workers claim messages, then complete, fail or release them."""

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

routes = Routes("claims", "Claims of external workers.")

DAY_SECONDS = 86_400
MAX_MESSAGES = 256
MAX_NAME_BYTES = 1000
EMPTY_ANSWER = "the response was empty"

Name = Annotated[str, Field(min_length=1, max_length=200)]
Token = Annotated[str, Field(max_length=200, description="The claim's token.")]
Lease = Annotated[
    int,
    Field(
        ge=1,
        le=DAY_SECONDS,
        description="Duration of the claim in seconds from now; by default the setting "
        "`lease_seconds`.",
    ),
]
Tokens = Annotated[int, Field(ge=0, le=MAX_USAGE)]


class ClaimBody(StrictBody):
    """A request for a claim."""

    agent: Name = Field(description="The agent whose messages to claim.")
    worker: Name = Field("outside", description="The worker's name, for people.")
    limit: int | None = Field(
        None,
        ge=1,
        le=MAX_MESSAGES,
        description="Maximum number of messages; by default the setting `claim_limit`.",
    )
    lease: Lease | None = None
    wait: float = Field(
        0,
        ge=0,
        le=60,
        allow_inf_nan=False,
        description="Seconds to wait for a message if there is none.",
    )


class ClaimedMessage(Answer):
    """A claimed message."""

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
    """A claim. One response answers all of its messages. Without messages, `token` is null."""

    token: str | None = None
    lease_expires_at: int | None = None
    messages: list[ClaimedMessage] = Field(
        default_factory=list, description="The response is a reply to the first message."
    )


class ExtendClaimBody(StrictBody):
    """A claim to extend."""

    token: Token
    lease: Lease | None = None


class ExtendClaimAnswer(Done):
    """The extended claim."""

    lease_expires_at: int


class UsageBody(StrictBody):
    """The provider that answered, and its usage."""

    provider: str | None = Field(None, max_length=200)
    model: str | None = Field(None, max_length=200)
    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cost: float = Field(0, ge=0, le=MAX_USAGE, allow_inf_nan=False, description="In dollars.")


class CompleteClaimBody(StrictBody):
    """The response of the agent."""

    token: Token
    response: str = Field(
        "", description="The text; tags in it, such as `[@coder: …]`, are carried out."
    )
    files: list[Annotated[str, Field(max_length=4096)]] = Field(
        default_factory=list,
        max_length=64,
        description="Names of uploaded files, or paths below the agent's directories.",
    )
    usage: UsageBody | None = None
    metadata: dict[str, JsonValue] | None = Field(None, description="Stored with the response.")


class CompleteClaimAnswer(Done):
    """The outcome of the claim."""

    status: str = Field(description="`completed`, or `failed` for an empty response.")


class FailClaimBody(StrictBody):
    """A failed run."""

    token: Token
    error: str
    kind: ErrorKind = Field(
        ErrorKind.RETRYABLE, description="Decides the next state of the messages."
    )
    retry_after: float | None = Field(
        None,
        ge=0,
        le=7 * DAY_SECONDS,
        allow_inf_nan=False,
        description="Seconds to wait before the next attempt.",
    )
    usage: UsageBody | None = None


class ReleaseClaimBody(StrictBody):
    """A claim to release."""

    token: Token
    reason: str = Field("released by its worker", max_length=2000)


@routes.post("/api/queue/claim", CLAIM, UnknownAgent)
def claim(body: ClaimBody) -> Annotated[Response, ClaimAnswer]:
    """Claim an agent's pending messages.

    The claim has the oldest message and the others with the same reply address. Each agent has at
    most one claim at a time. When a claim's lease ends without an extension, its messages can be
    claimed again. With `wait`, the request waits until there is a message.

    Messages for an agent with the provider `http` are left to external workers. Messages for other
    agents are also claimed by processors.
    """
    require_reach(body.agent)
    found = api().long_poll.wait_for(lambda: _try_claim(body), body.wait, caller().id)
    return as_json(ClaimAnswer()) if found is None else found


@routes.post("/api/queue/extend", CLAIM, StaleToken)
def extend_claim(body: ExtendClaimBody) -> ExtendClaimAnswer:
    """Extend a claim.

    409 `stale_token`: stop the run, because another worker may have claimed the messages.
    """
    _require_claim_reach(body.token)
    lease = None if body.lease is None else body.lease * SECOND
    with write(durable=False) as tx:
        return ExtendClaimAnswer(lease_expires_at=extend(tx, body.token, lease))


@routes.post("/api/queue/complete", CLAIM, StaleToken, UnknownAgent)
def complete_claim(body: CompleteClaimBody) -> CompleteClaimAnswer:
    """Answer the messages of a claim.

    Tags in the text are carried out: handoffs, room posts, files. A file is sent only if it is
    below the agent's directories or the uploads directory; otherwise the response says that it was
    not sent. An empty response is a failed attempt, and is retried.
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
    """Report a failed run.

    The kind of error decides what happens to the messages. `retryable`: they are retried after a
    delay. `rate_limit`: the agent's whole lane waits. `permanent`: they are dead at once. `auth`,
    `quota` and `setup`: the agent is paused and the owner is notified. `needs_person`: they are
    held. If the claim has several messages, none becomes dead or held: each is retried on its own.
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
    """Release a claim: its messages are pending again.

    No attempt is counted.
    """
    _require_claim_reach(body.token)
    with write() as tx:
        release(tx, body.token, sanitise_text(body.reason))
    return Done()


def _try_claim(body: ClaimBody) -> Response | None:
    if client_gone():
        # A claim that its worker never receives blocks the lane until the lease ends.
        return as_json(ClaimAnswer())
    has_ended = by_observation(api().store)
    with read() as tx:
        if not has_work(tx, body.agent, has_ended):
            return None
    lease = None if body.lease is None else body.lease * SECOND
    with write(durable=False) as tx:
        # The key may have been revoked while the request waited.
        require_valid(tx)
        claim = claim_for_worker(
            tx, body.worker, body.agent, limit=body.limit, lease=lease, has_ended=has_ended
        )
        if claim is not None:
            record_start(tx, claim, get_provider_name(tx, claim.agent))
        # Within the transaction: a claim that cannot be sent to the worker is rolled back.
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
