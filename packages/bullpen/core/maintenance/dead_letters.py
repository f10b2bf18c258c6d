"""Watches the dead letters: says when there are more, of what they died, and tells the owner."""

from __future__ import annotations

import logging
from collections import defaultdict

from sqlalchemy import ColumnElement, Subquery, and_, bindparam, func, select, update

from bullpen.core.clock import DAY, SECOND
from bullpen.core.events.append import append_event
from bullpen.core.events.system import DeadLettersGrew
from bullpen.core.models import MESSAGES, SYSTEM_AGENTS
from bullpen.core.models.base import const
from bullpen.core.outbox.notices import notify_owner
from bullpen.core.queue.attempts import fingerprint
from bullpen.core.queue.dead_letters import (
    DeadMessage,
    FailureGroup,
    add_to_failure_group,
    mark_owner_notified,
)
from bullpen.core.queue.manage import SELECT_MESSAGE
from bullpen.core.states import MessageState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

log = logging.getLogger(__name__)

JOB_NAME = "dead_letters"
BATCH = 500
MAX_BATCHES = 100
SETTLE_TIME = 5 * SECOND
"""Deaths are looked at so late: on PostgreSQL who began earlier may end later."""
NOTICE_INTERVAL = DAY
"""The owner hears of a cause again after so long, and not at all of what is older."""
MAX_ERROR_CHARS = 500
"""Characters of an error."""

A = SYSTEM_AGENTS.c
M = MESSAGES.c

FIND_CURSOR: Statement[tuple[int]] = Statement(
    lambda: select(A.cursor).where(A.name == const(JOB_NAME))
)

ADVANCE_CURSOR: Statement[None] = Statement(
    lambda: (
        update(SYSTEM_AGENTS)
        .where(A.name == const(JOB_NAME), A.cursor == bindparam("seen"))
        .values(cursor=bindparam("upto"))
    )
)

# Twice, for SQLite takes a partial index only where its own condition is asked for.


def _dead() -> ColumnElement[bool]:
    return and_(
        M.status.in_([const(state.value) for state in (MessageState.DEAD, MessageState.HELD)]),
        M.status == const(MessageState.DEAD.value),
    )


def _next_dead() -> Subquery:
    return (
        select(M.updated_at)
        .where(_dead(), M.updated_at > bindparam("after"), M.updated_at <= bindparam("settled"))
        .order_by(M.updated_at, M.id)
        .limit(const(BATCH))
        .subquery()
    )


NEXT_CURSOR: Statement[tuple[int | None]] = Statement(
    lambda: select(func.max(_next_dead().c.updated_at))
)

# Those that died in the same millisecond are looked at together, be they a few more.
NEW_DEAD_LETTERS: Statement[tuple[str, str, str | None, str | None, int]] = Statement(
    lambda: (
        select(M.message_id, M.agent, M.error_kind, M.last_error, M.updated_at)
        .where(_dead(), M.updated_at > bindparam("after"), M.updated_at <= bindparam("upto"))
        .order_by(M.updated_at, M.id)
    )
)

COUNT_DEAD: Statement[tuple[int]] = Statement(lambda: select(func.count()).where(_dead()))


def watch_dead_letters(store: Store) -> str:
    """Look at all that died since the last look."""
    new, causes = 0, set[str]()
    for _ in range(MAX_BATCHES):
        with store.write(durable=False) as tx:
            found = _next_by_cause(tx)
        for cause in found:
            log.warning(
                "%d more dead letters of one cause, %d in all: %s: bullpen queue dead",
                len(found[cause]),
                cause.deaths,
                cause.error,
            )
        new += sum(map(len, found.values()))
        causes |= {each.fingerprint for each in found}
        if not found:
            break
    with store.read() as tx:
        row = tx.one(COUNT_DEAD, {})
    dead = 0 if row is None else row[0]
    return f"{dead} dead, {new} of them new" + (f", of {len(causes)} causes" if causes else "")


def _next_by_cause(tx: Transaction) -> dict[FailureGroup, list[DeadMessage]]:
    """The next deaths by cause, counted and told of; nothing if there are none."""
    found = tx.one(FIND_CURSOR, {})
    cursor = 0 if found is None else found[0]
    after = cursor
    if cursor > tx.now:  # the clock was set back
        after = tx.now - SETTLE_TIME
        tx.write(ADVANCE_CURSOR, {"seen": cursor, "upto": after})
        cursor = after
    last = tx.one(NEXT_CURSOR, {"after": after, "settled": tx.now - SETTLE_TIME})
    if last is None or last[0] is None:
        return {}
    upto = last[0]
    # Whoever lost his turn meanwhile comes second, and counts nothing.
    if tx.change(ADVANCE_CURSOR, {"seen": cursor, "upto": upto}) == 0:
        return {}
    by_cause: dict[str, list[DeadMessage]] = defaultdict(list)
    for message_id, agent, kind, error, at in tx.all(
        NEW_DEAD_LETTERS, {"after": after, "upto": upto}
    ):
        text = error or "nobody said why"
        death = DeadMessage(message_id, agent, kind or "unknown", text[:MAX_ERROR_CHARS], at)
        by_cause[fingerprint(text)].append(death)
    causes = {}
    for each, deaths in by_cause.items():
        cause = add_to_failure_group(tx, each, deaths)
        _announce(tx, cause, deaths)
        causes[cause] = deaths
    return causes


def _announce(tx: Transaction, cause: FailureGroup, deaths: list[DeadMessage]) -> None:
    agents = sorted({each.agent for each in deaths})
    grew = DeadLettersGrew(
        fingerprint=cause.fingerprint,
        kind=cause.kind,
        error=cause.error,
        deaths=cause.deaths,
        new=len(deaths),
        agents=agents,
    )
    append_event(tx, grew)
    silent_since = tx.now - NOTICE_INTERVAL
    if cause.last_at <= silent_since or (cause.told_at or 0) > silent_since:
        return
    about = tx.one(SELECT_MESSAGE, {"message_id": deaths[-1].message_id})
    if about is None:
        return
    whom = ", ".join(f"@{agent}" for agent in agents)
    notify_owner(
        tx,
        about,
        f"{len(deaths)} more messages to {whom} could not be answered, {cause.deaths} in all, "
        f"and the reason is the same ({cause.kind}): {cause.error}\n"
        "bullpen queue dead lists them, bullpen queue retry ID tries one again.",
    )
    mark_owner_notified(tx, cause.fingerprint)
