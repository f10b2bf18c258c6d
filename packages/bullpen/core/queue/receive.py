"""receive: a person's message, routed once, to agents that exist."""

from __future__ import annotations

from dataclasses import replace

from bullpen.core.errors import BadText, TextTooLong
from bullpen.core.events.append import EventType, append_event
from bullpen.core.message import Accepted, NewMessage
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.lane import lock_lane
from bullpen.core.queue.room import post_in_room
from bullpen.core.roster.everyone import everyone
from bullpen.core.routing.address import Addressed, address
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text


def receive(tx: Transaction, new: NewMessage) -> tuple[Accepted, ...]:
    """Store what a person wrote, for everyone whom it addresses.

    `new.agent` is whom it goes to if it addresses nobody; empty is the setting `default_agent`.
    All parts belong to one conversation, which has the id of the first.
    """
    check_text(new.message, tx.settings.message_bytes)
    parts = address(new.message, everyone(tx), new.agent or tx.settings.default_agent)
    if sum(len(part.text) for part in parts) > tx.settings.message_bytes * 8:
        raise TextTooLong("the message goes to so many that it would be too long in all")
    for agent in sorted({part.agent for part in parts if part.agent is not None}):
        lock_lane(tx, agent)
    accepted: list[Accepted] = []
    for part in parts:
        if part.room is not None:
            accepted.append(Accepted(post_in_room(tx, part.room, part.text, new.sender)))
            continue
        one = _part(new, part)
        if accepted:
            one = replace(
                one, message_id=None, receipt=None, conversation_id=accepted[0].message_id
            )
        stored = enqueue(tx, one)
        accepted.append(stored)
        if not stored.fresh:
            break
        _tell(tx, part, accepted)
    return tuple(accepted)


def _part(new: NewMessage, part: Addressed) -> NewMessage:
    assert part.agent is not None
    if not part.text and not new.files:
        raise BadText(
            f"there is nothing to tell @{part.agent}", hint="Write something after the name."
        )
    return replace(new, agent=part.agent, message=part.text, team_id=part.team or new.team_id)


def _tell(tx: Transaction, part: Addressed, accepted: list[Accepted]) -> None:
    told = {"message_id": accepted[-1].message_id, "conversation_id": accepted[0].message_id}
    append_event(tx, EventType.AGENT_ROUTED, agent=part.agent, **told, team=part.team)
    if part.team is not None:
        append_event(tx, EventType.TEAM_CHAIN_START, agent=part.agent, **told, team=part.team)
