"""Watches the dead letters: says when there are more, of what they died, and tells the owner."""

from __future__ import annotations

import logging
from collections import defaultdict

from sqlalchemy import ColumnElement, Subquery, and_, bindparam, func, select, update

from bullpen.core.clock import DAY, SECOND
from bullpen.core.events.append import EventType, append_event
from bullpen.core.message import Message
from bullpen.core.models import MESSAGES, SYSTEM_AGENTS
from bullpen.core.models.base import const
from bullpen.core.outbox.people import tell_owner
from bullpen.core.queue.causes import Death, DeathCause, add_deaths, owner_was_told
from bullpen.core.queue.find import MESSAGE
from bullpen.core.queue.run import fingerprint
from bullpen.core.states import MessageState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

log = logging.getLogger(__name__)

NAME = "dead_letters"
BATCH = 500
MOST = 100
LATE = 5 * SECOND
"""Deaths are looked at so late: on PostgreSQL who began earlier may end later."""
SILENCE = DAY
"""The owner hears of a cause again after so long, and not at all of what is older."""
SHOWN = 500
"""Characters of an error."""

A = SYSTEM_AGENTS.c
M = MESSAGES.c

CURSOR: Statement[tuple[int]] = Statement(lambda: select(A.cursor).where(A.name == const(NAME)))

ADVANCE: Statement[None] = Statement(
    lambda: (
        update(SYSTEM_AGENTS)
        .where(A.name == const(NAME), A.cursor == bindparam("seen"))
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


UPTO: Statement[tuple[int | None]] = Statement(lambda: select(func.max(_next_dead().c.updated_at)))

# Those that died in the same millisecond are looked at together, be they a few more.
DEATHS: Statement[tuple[str, str, str | None, str | None, int]] = Statement(
    lambda: (
        select(M.message_id, M.agent, M.error_kind, M.last_error, M.updated_at)
        .where(_dead(), M.updated_at > bindparam("after"), M.updated_at <= bindparam("upto"))
        .order_by(M.updated_at, M.id)
    )
)

COUNT: Statement[tuple[int]] = Statement(lambda: select(func.count()).where(_dead()))


def dead_letters(store: Store) -> str:
    """Look at all that died since the last look."""
    new, causes = 0, set[str]()
    for _ in range(MOST):
        with store.write(durable=False) as tx:
            found = _next(tx)
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
        row = tx.one(COUNT, {})
    dead = 0 if row is None else row[0]
    return f"{dead} dead, {new} of them new" + (f", of {len(causes)} causes" if causes else "")


def _next(tx: Transaction) -> dict[DeathCause, list[Death]]:
    """The next deaths by cause, counted and told of; nothing if there are none."""
    found = tx.one(CURSOR, {})
    cursor = 0 if found is None else found[0]
    after = cursor
    if cursor > tx.now:  # the clock was set back
        after = tx.now - LATE
        tx.write(ADVANCE, {"seen": cursor, "upto": after})
        cursor = after
    last = tx.one(UPTO, {"after": after, "settled": tx.now - LATE})
    if last is None or last[0] is None:
        return {}
    upto = last[0]
    # Whoever lost his turn meanwhile comes second, and counts nothing.
    if tx.change(ADVANCE, {"seen": cursor, "upto": upto}) == 0:
        return {}
    by_cause: dict[str, list[Death]] = defaultdict(list)
    for message_id, agent, kind, error, at in tx.all(DEATHS, {"after": after, "upto": upto}):
        text = error or "nobody said why"
        death = Death(message_id, agent, kind or "unknown", text[:SHOWN], at)
        by_cause[fingerprint(text)].append(death)
    causes = {}
    for each, deaths in by_cause.items():
        cause = add_deaths(tx, each, deaths)
        _tell(tx, cause, deaths)
        causes[cause] = deaths
    return causes


def _tell(tx: Transaction, cause: DeathCause, deaths: list[Death]) -> None:
    agents = sorted({each.agent for each in deaths})
    append_event(
        tx,
        EventType.DEAD_LETTERS_GREW,
        fingerprint=cause.fingerprint,
        kind=cause.kind,
        error=cause.error,
        deaths=cause.deaths,
        new=len(deaths),
        agents=agents,
    )
    silent_since = tx.now - SILENCE
    if cause.last_at <= silent_since or (cause.told_at or 0) > silent_since:
        return
    about = tx.one(MESSAGE, {"message_id": deaths[-1].message_id})
    if about is None:
        return
    whom = ", ".join(f"@{agent}" for agent in agents)
    tell_owner(
        tx,
        Message(*about),
        f"{len(deaths)} more messages to {whom} could not be answered, {cause.deaths} in all, "
        f"and the reason is the same ({cause.kind}): {cause.error}\n"
        "bullpen queue dead lists them, bullpen queue retry ID tries one again.",
    )
    owner_was_told(tx, cause.fingerprint)
