"""A team: agents with a leader, a room and limits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict


class DeliveryMode(StrEnum):
    """How a team's answers come to the person who asked."""

    STREAM = "stream"
    """Each when it is ready."""
    AGGREGATE = "aggregate"
    """All as one, when the conversation is at rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """One team."""

    id: str
    name: str = ""
    leader: str
    members: tuple[str, ...]
    delivery: DeliveryMode = DeliveryMode.STREAM
    max_hops: int | None = None
    """These three are the settings of the same name where they are None."""
    max_messages: int | None = None
    max_cost: float | None = None


class TeamChange(TypedDict, total=False):
    """What of a team is to be changed; what is not named stays."""

    name: str
    leader: str
    members: tuple[str, ...]
    delivery: DeliveryMode
    max_hops: int | None
    max_messages: int | None
    max_cost: float | None
