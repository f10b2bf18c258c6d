"""Claimed messages that are not completed: back to waiting, held, or dead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, bindparam, func, null, select, update

from bullpen.core.message import Message
from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.columns import MessageTuple, message_columns
from bullpen.core.queue.run import EndedClaim
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c


def _claimed() -> tuple[ColumnElement[bool], ...]:
    return (
        M.id == bindparam("message"),
        M.status == const(MessageState.PROCESSING.value),
        M.claim_token == bindparam("token"),
    )


SELECT_CLAIMED: Statement[MessageTuple] = Statement(
    lambda: select(*message_columns()).where(*_claimed())
)

APPLY_DISPOSITION: Statement[None] = Statement(
    lambda: (
        update(MESSAGES)
        .where(*_claimed())
        .values(
            status=bindparam("status"),
            retry_count=M.retry_count + bindparam("failed"),
            crash_count=M.crash_count + bindparam("crashed"),
            last_error=func.coalesce(bindparam("error"), M.last_error),
            error_kind=func.coalesce(bindparam("kind"), M.error_kind),
            ready=bindparam("is_ready"),
            available_at=bindparam("at"),
            claim_token=null(),
            updated_at=bindparam("now"),
        )
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disposition:
    """What becomes of one message."""

    status: MessageState
    wait: int = 0
    """Milliseconds before it may be claimed again."""
    failed: int = 0
    crashed: int = 0
    kind: str | None = None
    error: str | None = None


def claimed_messages(tx: Transaction, run: EndedClaim) -> list[Message]:
    """The messages of this run, the primary first."""
    values = [{"message": each, "token": run.token} for each in run.ids]
    return [Message(*row) for row in tx.one_each(SELECT_CLAIMED, values) if row is not None]


def apply_dispositions(
    tx: Transaction, run: EndedClaim, fates: Sequence[tuple[Message, Disposition]]
) -> int:
    """Move each message to its fate; gives how many are waiting again."""
    tx.change_each(
        APPLY_DISPOSITION,
        [
            {
                "message": message.id,
                "token": run.token,
                "status": fate.status.value,
                "failed": fate.failed,
                "crashed": fate.crashed,
                "error": fate.error,
                "kind": fate.kind,
                "is_ready": fate.wait == 0,
                "at": tx.now + fate.wait,
                "now": tx.now,
            }
            for message, fate in fates
        ],
    )
    return sum(fate.status is MessageState.PENDING for _, fate in fates)
