"""A claim that has just been ended: what it was, and the record of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import bindparam, insert

from bullpen.core.errors import StaleToken
from bullpen.core.ids import agent_of
from bullpen.core.message import Message
from bullpen.core.models import ATTEMPTS
from bullpen.core.outcome import NO_USAGE, Failure, Usage
from bullpen.core.queue.lane import FREE, Freed, claimed_agent
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Answer, Transaction

_VARIABLE = re.compile(r"\b[0-9a-f]{8,}|\d+|\b[a-z]+_[a-z0-9]{8}\b")
_ERROR_LENGTH = 2000

INSERT: Statement[None] = Statement(
    lambda: insert(ATTEMPTS).values(
        {column.name: bindparam(column.name) for column in ATTEMPTS.c if column.name != "id"}
    )
)


class RunOutcome(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CRASHED = "crashed"
    RELEASED = "released"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Run:
    """A claim that was just ended, whose lane is free again."""

    agent: str
    token: str
    ids: tuple[int, ...]
    claimed_at: int
    worker: str


def end_run(tx: Transaction, token: str) -> Run:
    """Free the locked lane of this claim; whoever comes second with a token changes nothing."""
    return ended(token, ask_to_end(tx, token))


def ask_to_end(tx: Transaction, token: str) -> Answer[Freed]:
    """The same, its answer to be given to `ended`."""
    return tx.later(FREE, {"agent": claimed_agent(token), "token": token, "now": tx.now})


def ended(token: str, freed: Answer[Freed]) -> Run:
    """The run, if the claim was still valid."""
    row = freed()
    if row is None:
        raise StaleToken(f"the claim {token} is over")
    return Run(agent_of(token), token, tuple(json.loads(row[0])), row[1], row[2])


def record_attempt(
    tx: Transaction,
    run: Run,
    messages: Sequence[Message],
    outcome: RunOutcome,
    usage: Usage = NO_USAGE,
    failure: Failure | None = None,
) -> None:
    """Append the fact that this run was."""
    primary = messages[0]
    tx.write(
        INSERT,
        {
            "message_id": primary.message_id,
            "messages": len(messages),
            "agent": run.agent,
            "worker": run.worker,
            "outcome": outcome.value,
            "error_kind": None if failure is None else failure.kind.value,
            "error": None if failure is None else failure.error[:_ERROR_LENGTH],
            "fingerprint": None if failure is None else fingerprint(failure.error),
            "retry_count": primary.retry_count,
            "provider": usage.provider,
            "model": usage.model,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost": usage.cost,
            "conversation_id": primary.conversation_id,
            "hop": primary.hop,
            "team_id": primary.team_id,
            "channel": primary.channel,
            "enqueued_at": primary.created_at,
            "claimed_at": run.claimed_at,
            "started_at": run.claimed_at if usage.started_at is None else usage.started_at,
            "finished_at": tx.now,
        },
    )


def fingerprint(error: str) -> str:
    """The same short text for errors that differ in numbers and ids only."""
    shape = _VARIABLE.sub("#", error[:_ERROR_LENGTH].lower())[:200]
    return hashlib.sha256(shape.encode(errors="replace")).hexdigest()[:12]
