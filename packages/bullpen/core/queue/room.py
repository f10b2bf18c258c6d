"""A team's room: a post is kept, and goes to every member but its author."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bullpen.core.history.post import keep_post
from bullpen.core.message import ROOM, NewMessage
from bullpen.core.queue.enqueue import enqueue_many
from bullpen.core.roster.team import Team
from bullpen.core.roster.teams import get_team
from bullpen.core.store.transaction import Transaction


def room_copies(team: Team, new: NewMessage) -> list[NewMessage]:
    """What a person says in a room, for each member."""
    return [
        replace(
            new,
            agent=agent,
            channel=ROOM,
            team_id=team.id,
            # Nobody is answered who posts in a room, and each copy has an id of its own.
            reply_to=None,
            message_id=None,
            receipt=None,
        )
        for agent in team.members
    ]


@dataclass(frozen=True, slots=True)
class RoomReceipt:
    """A post: its number in the room, and the conversation that it begins."""

    id: int
    conversation_id: str


def post_in_room(tx: Transaction, team_id: str, text: str, sender: str) -> RoomReceipt:
    """A person says something in a room."""
    team = get_team(tx, team_id)
    conversation = tx.ids.new(ROOM)
    post = NewMessage(agent="", message=text, sender=sender, conversation_id=conversation)
    enqueue_many(tx, room_copies(team, post))
    return RoomReceipt(keep_post(tx, team.id, sender, text), conversation)
