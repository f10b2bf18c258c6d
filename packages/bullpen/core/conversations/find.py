"""The conversation that an id is of: its own, or that of any message in it."""

from __future__ import annotations

from bullpen.core.errors import UnknownMessage
from bullpen.core.queue.attempts import list_attempts
from bullpen.core.queue.browse import get_message
from bullpen.core.store.transaction import Transaction


def get_conversation_id(tx: Transaction, id_: str) -> str:
    """The conversation's id; the given one, if there is no message of that name."""
    try:
        return get_message(tx, id_).conversation_id
    except UnknownMessage:
        # Of a message that is kept no longer its runs may still be known.
        found = list_attempts(tx, {"message_id": id_}, 0, 1)
        return found[0].conversation_id if found else id_
