"""Takes in a person's message, by whichever way it came."""

from __future__ import annotations

from bullpen.api.context import api, check_reach
from bullpen.core.access.key import Key
from bullpen.core.errors import BadRequest
from bullpen.core.message import INTERNAL_CHANNELS, Accepted, NewMessage
from bullpen.core.queue.browse import MessageFilter, list_messages
from bullpen.core.queue.receive import submit
from bullpen.core.store.transaction import Transaction

EVERY = 1 << 31


def publish(key: Key, new: NewMessage) -> tuple[Accepted, ...]:
    """Store it for everyone whom it addresses; those must all be within the key's reach."""
    if new.channel in INTERNAL_CHANNELS:
        # What comes on them is answered to nobody, and may end in silence.
        raise BadRequest(
            f"on the channel {new.channel!r} nobody writes but Bullpen itself",
            hint="Rooms are at `/api/chatroom/<team>`, heartbeats at `/api/agents/<id>/heartbeat`.",
        )

    def store(tx: Transaction) -> tuple[Accepted, ...]:
        accepted = submit(tx, new)
        if key.agents is not None:
            sent = MessageFilter(conversation_id=accepted[0].message_id)
            for seen in list_messages(tx, sent, 0, EVERY):
                check_reach(key, seen.agent)
        return accepted

    return api().together.write(store)
