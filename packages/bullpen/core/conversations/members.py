"""Which rows are of a conversation. Its first message is found by its own id, all others by its."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

from sqlalchemy import ColumnElement, Select, Table, bindparam, func, or_, select, union_all

from bullpen.core.models import ARCHIVE, MESSAGES
from bullpen.core.queue.browse import Seen
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

NAMES = tuple(each.name for each in fields(Seen))

MOVING = (MessageState.PENDING, MessageState.PROCESSING)


class Stand(StrEnum):
    """How a conversation stands."""

    UNDER_WAY = "under_way"
    HELD = "held"
    """Nothing of it moves before a person lets it go on."""
    AT_REST = "at_rest"


@dataclass(frozen=True, slots=True)
class Counts:
    """How many messages of a conversation are in which state."""

    by_state: dict[str, int]

    @property
    def messages(self) -> int:
        """How many there are in all."""
        return sum(self.by_state.values())

    @property
    def stand(self) -> Stand:
        """What follows from them."""
        if any(self.by_state.get(state.value) for state in MOVING):
            return Stand.UNDER_WAY
        return Stand.HELD if self.by_state.get(MessageState.HELD.value) else Stand.AT_REST


def _whose(table: Table) -> ColumnElement[bool]:
    c = table.c
    if table is ARCHIVE:
        return c.conversation_id == bindparam("conversation")
    return or_(
        c.message_id == bindparam("conversation"),
        (c.conversation_id == bindparam("conversation")) & (c.conversation_id != c.message_id),
    )


def members(table: Table, names: Iterable[str] = NAMES) -> Select[tuple[object, ...]]:
    """The live or the archived messages of a conversation."""
    columns = (table.c[name] for name in names)
    return select(*columns).where(_whose(table))


def everywhere(name: str) -> Select[tuple[str]]:
    """One column of all its messages, live and archived."""
    both = union_all(*(members(table, (name,)) for table in (MESSAGES, ARCHIVE)))
    found = both.subquery()
    return select(found.c[name])


COUNT: Statement[tuple[str, int]] = Statement(
    lambda: union_all(
        *(
            select(table.c.status, func.count()).where(_whose(table)).group_by(table.c.status)
            for table in (MESSAGES, ARCHIVE)
        )
    )
)

AGENTS: Statement[tuple[str]] = Statement(lambda: everywhere("agent").distinct())


def count(tx: Transaction, conversation_id: str) -> Counts:
    """How its messages stand."""
    found: dict[str, int] = {}
    for state, number in tx.all(COUNT, {"conversation": conversation_id}):
        found[state] = found.get(state, 0) + number
    return Counts(found)


def agents_of(tx: Transaction, conversation_id: str) -> Sequence[str]:
    """Whose messages they are."""
    check_text(conversation_id, tx.settings.message_bytes, "the conversation's id")
    return [agent for (agent,) in tx.all(AGENTS, {"conversation": conversation_id})]
