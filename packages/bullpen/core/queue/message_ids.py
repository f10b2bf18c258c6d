"""MessageIds: allocates the ids of new messages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, select

from bullpen.core.errors import DuplicateMessage
from bullpen.core.message import ROOM, NewMessage
from bullpen.core.models.archive import MESSAGE_TABLES, live_and_archived
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import DeferredRow, Transaction

# The id of an archived message stays in use.
SELECT_STATE: Statement[tuple[str]] = Statement(
    lambda: live_and_archived(
        MESSAGE_TABLES,
        lambda table: select(table.c.status).where(table.c.message_id == bindparam("message_id")),
    )
)


def find_message_state(tx: Transaction, message_id: str) -> str | None:
    """The state of the message with this id, archived or not; None if there is none."""
    row = tx.one(SELECT_STATE, {"message_id": message_id})
    return None if row is None else row[0]


class ProposedId(NamedTuple):
    """A proposed id, and the state of the message that already has it, if any."""

    new: NewMessage
    id: str
    taken: DeferredRow[tuple[str]]


class MessageIds:
    """Proposes ids before the lanes are locked, and allocates them afterwards.

    On PostgreSQL the lookup of existing ids then shares the round trip of the locks.
    """

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    def propose(self, news: Sequence[NewMessage]) -> list[ProposedId]:
        """Choose an id for each message: its own, or a new one."""
        return [self._propose(new, new.message_id or self._make(new)) for new in news]

    def allocate(self, proposed: Sequence[ProposedId]) -> list[str]:
        """The ids in the same order; raises `DuplicateMessage` if a client's own id is in use."""
        ids: dict[str, None] = {}
        for new, id_, taken in proposed:
            row = taken()
            if row is None and id_ not in ids:
                ids[id_] = None
            elif new.message_id is not None:
                raise DuplicateMessage(id_, MessageState.PENDING.value if row is None else row[0])
            else:
                ids[self._make_another(new, ids)] = None
        return list(ids)

    def _propose(self, new: NewMessage, id_: str) -> ProposedId:
        return ProposedId(new, id_, self._tx.one_deferred(SELECT_STATE, {"message_id": id_}))

    def _make(self, new: NewMessage) -> str:
        return self._tx.ids.new(_id_prefix(new))

    def _make_another(self, new: NewMessage, ids: Collection[str]) -> str:
        """Generate ids until one is free: a collision of a generated id is not a duplicate."""
        while True:
            id_ = self._make(new)
            if id_ not in ids and find_message_state(self._tx, id_) is None:
                return id_


def _id_prefix(new: NewMessage) -> str:
    if new.channel == ROOM:
        return "chat"
    if new.origin is not None:
        return new.origin
    return "internal" if new.from_agent is not None else new.channel
