"""The ids of new messages: a client's own, once; or made up, and never one that exists."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import bindparam, select, union_all

from bullpen.core.errors import DuplicateMessage
from bullpen.core.message import ROOM, NewMessage
from bullpen.core.models import MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

# An id stays taken after its message went to the archive.
SELECT_STATE: Statement[tuple[str]] = Statement(
    lambda: union_all(
        *(
            select(table.c.status).where(table.c.message_id == bindparam("message_id"))
            for table in (MESSAGES, MESSAGES_ARCHIVE)
        )
    )
)


def find_message_state(tx: Transaction, message_id: str) -> str | None:
    """The state of the message of this id, archived ones included; None if there is none."""
    row = tx.one(SELECT_STATE, {"message_id": message_id})
    return None if row is None else row[0]


class MessageIds:
    """The ids of messages that are about to be written; asked for early, settled when needed."""

    def __init__(self, tx: Transaction, news: Sequence[NewMessage]) -> None:
        self._tx = tx
        self._news = news
        self._ids = [new.message_id or tx.ids.new(_id_prefix(new)) for new in news]
        self._states = [tx.one_deferred(SELECT_STATE, {"message_id": id_}) for id_ in self._ids]

    def allocate(self) -> list[str]:
        """The ids; a client's that exists already is a duplicate, one of ours is made anew."""
        settled: dict[str, None] = {}
        for new, id_, state in zip(self._news, self._ids, self._states, strict=True):
            row = state()
            if row is None and id_ not in settled:
                settled[id_] = None
            elif new.message_id is not None:
                raise DuplicateMessage(id_, MessageState.PENDING.value if row is None else row[0])
            else:
                settled[self._another(new, settled)] = None
        return list(settled)

    def _another(self, new: NewMessage, settled: Collection[str]) -> str:
        """A made-up id met one that exists: that is chance, not a duplicate."""
        while True:
            id_ = self._tx.ids.new(_id_prefix(new))
            if id_ not in settled and find_message_state(self._tx, id_) is None:
                return id_


def _id_prefix(new: NewMessage) -> str:
    if new.channel == ROOM:
        return "chat"
    if new.origin is not None:
        return new.origin
    return "internal" if new.from_agent is not None else new.channel
