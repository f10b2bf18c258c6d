"""Attempts: each run that has ended, how, and what it took."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from flask import Response
from pydantic import BaseModel, Field, RootModel

from bullpen.api.context import reach, read
from bullpen.api.models import Page, listed, upto
from bullpen.api.route import blueprint, route
from bullpen.core.access.key import Scope
from bullpen.core.message import ErrorKind
from bullpen.core.models import ATTEMPTS
from bullpen.core.queue.attempts import Attempt, list_attempts
from bullpen.core.queue.run import AttemptOutcome

ATTEMPT_ROUTES = blueprint("attempts", "Runs that have ended.")

Text = Annotated[str, Field(max_length=200)]


class AttemptAnswer(BaseModel):
    """One run that has ended."""

    id: int
    message_id: str = Field(description="the first of the messages that it was to answer")
    messages: int = Field(description="how many they were")
    agent: str
    worker: str
    outcome: AttemptOutcome
    error_kind: ErrorKind | None
    error: str | None
    fingerprint: str | None = Field(
        description="the same for errors that differ in numbers and ids only"
    )
    retry_count: int
    provider: str | None
    model: str | None
    input_tokens: int
    output_tokens: int
    cost: float = Field(description="dollars")
    conversation_id: str
    hop: int
    team_id: str | None
    channel: str
    enqueued_at: int
    claimed_at: int
    started_at: int
    finished_at: int

    @classmethod
    def of(cls, attempt: Attempt) -> AttemptAnswer:
        """The row, as it is shown."""
        return cls.model_validate(asdict(attempt))


class AttemptList(RootModel[list[AttemptAnswer]]):
    """Runs that have ended."""


class AttemptQuery(Page):
    """Which runs."""

    agent: Text | None = None
    outcome: AttemptOutcome | None = None
    error_kind: ErrorKind | None = None
    message_id: Text | None = None
    conversation_id: Text | None = None


@route(ATTEMPT_ROUTES, "GET", "/api/attempts", scope=Scope.READ, answer=AttemptList)
def attempts(query: AttemptQuery) -> Response:
    """List the runs, the latest first; with `since_id` those after it, the oldest first.

    A key for some agents must name one of them.
    """
    reach(query.agent)
    wanted = query.model_dump(exclude={"limit", "since_id"})
    last = upto(ATTEMPTS, query.since_id)
    with read() as tx:
        found = list_attempts(tx, wanted, query.since_id, query.limit, upto=last)
    rows = AttemptList([AttemptAnswer.of(each) for each in found])
    return listed(rows, [each.id for each in found], query)
