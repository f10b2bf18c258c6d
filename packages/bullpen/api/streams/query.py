"""What a stream is asked for, over SSE and over WebSocket alike."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from bullpen.api.models import Cursor
from bullpen.api.streams.filter import Filter
from bullpen.core.access.key import Key
from bullpen.core.text import check_text

LONGEST = 2000

Name = Annotated[str, Field(max_length=200)]

TYPES = Annotated[
    str | None,
    Field(
        max_length=LONGEST,
        description="names of events, ours or the reference's, with commas between them",
    ),
]


class StreamQuery(BaseModel):
    """Which events, and from where."""

    since_id: Cursor | None = Field(
        None, description="everything after this id first; without it, from now on"
    )
    types: TYPES = None
    agent: Name | None = None
    conversation_id: Name | None = None
    team: Name | None = Field(None, description="only what is about this team, or its messages")

    def filter(self, key: Key) -> Filter:
        """What it comes to for this key."""
        return made(
            key,
            types=names(self.types),
            agent=self.agent,
            conversation_id=self.conversation_id,
            team=self.team,
        )


def made(
    key: Key,
    *,
    types: frozenset[str] | None,
    agent: str | None,
    conversation_id: str | None,
    team: str | None,
) -> Filter:
    """A filter for this key, of what can be text in a database."""
    for text in (*(types or ()), agent, conversation_id, team):
        check_text(text or "", LONGEST, "what is asked for")
    return Filter(
        types=types,
        agent=agent,
        conversation_id=conversation_id,
        team=team,
        reach=key.agents,
    )


def names(text: str | None) -> frozenset[str] | None:
    """The names between the commas; None is all."""
    if text is None:
        return None
    return frozenset(each.strip() for each in text.split(",") if each.strip()) or None
