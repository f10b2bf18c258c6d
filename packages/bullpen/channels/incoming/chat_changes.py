"""Changes of chats: renamed, moved, closed to the bot, or opted out by their people."""

from __future__ import annotations

from collections.abc import Sequence

from bullpen.channels.inbound import Chat, ChatChange
from bullpen.core.channels.chats import find_chat, move_chat, set_name, set_opted_out
from bullpen.core.outbox.write import send_to_owner
from bullpen.core.queue.enqueue import PlatformEvent, record_receipts
from bullpen.core.store.transaction import Transaction

COMMAND_RECEIPT = "-"
"""The receipt of what became no message."""


def change_chat(
    tx: Transaction, channel: str, change: ChatChange, events: Sequence[PlatformEvent]
) -> None:
    """Record a change of a chat, and notify the owner of what ends it."""
    chat = change.chat
    if change.moved_to:
        move_chat(tx, channel, chat.id, change.moved_to)
        return
    if change.opted_out is not None:
        _opt_out(tx, channel, chat, events, out=change.opted_out)
    if change.closed:
        if find_chat(tx, channel, chat.id) is None:
            return  # one of the many that the bot can see
        name = chat.name or chat.id
        send_to_owner(tx, f"{name} on {channel} is closed: {change.closed}.")
    elif chat.name:
        set_name(tx, channel, chat.id, chat.name)


def _opt_out(
    tx: Transaction, channel: str, chat: Chat, events: Sequence[PlatformEvent], *, out: bool
) -> None:
    """Record that a person wants no more messages, or wants them again; strangers have none."""
    known = find_chat(tx, channel, chat.id)
    if known is None:
        return
    # The platform's list has the message as well.
    record_receipts(tx, events, COMMAND_RECEIPT)
    if out == (known.opted_out_at is not None):
        return
    set_opted_out(tx, channel, chat.id, tx.now if out else None)
    what = "no more messages" if out else "messages again"
    send_to_owner(tx, f"{chat.name or chat.id} on {channel} has asked for {what}.")
