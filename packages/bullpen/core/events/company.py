"""What happens to lanes, agents, teams, their rooms, and API keys."""

from __future__ import annotations

from bullpen.core.events.base import AgentEvent, Event, Level, note


class LanePaused(AgentEvent):
    """nothing more is claimed for an agent"""

    type = "lane_paused"
    level = Level.WARNING
    says = "is paused"
    reason: str | None


class LaneResumed(AgentEvent):
    """it is claimed for again"""

    type = "lane_resumed"
    says = "works again"
    reason: str | None


class LaneDraining(AgentEvent):
    """nothing new is taken in for it"""

    type = "lane_draining"
    says = "takes nothing new"
    reason: str | None


class LaneArchived(AgentEvent):
    """its lane is closed"""

    type = "lane_archived"
    says = "has left"
    reason: str | None


class AgentAdded(AgentEvent):
    """an agent was taken on"""

    type = "agent_added"
    says = "is new"


class AgentChanged(AgentEvent):
    """an agent was changed"""

    type = "agent_changed"
    says = "was changed"
    changed: list[str] = note("names")


class AgentRemoved(AgentEvent):
    """an agent was let go"""

    type = "agent_removed"
    says = "was removed"
    quiet = True  # its lane was archived, which has a line


class TeamEvent(Event):
    """Something that happened to a team."""

    team: str

    @property
    def who(self) -> str:
        """The team."""
        return f"#{self.team}"


class TeamAdded(TeamEvent):
    """a team was made"""

    type = "team_added"
    says = "is a new team"


class TeamChanged(TeamEvent):
    """a team was changed"""

    type = "team_changed"
    says = "was changed"
    changed: list[str] = note("names")


class TeamRemoved(TeamEvent):
    """a team was disbanded"""

    type = "team_removed"
    says = "was disbanded"


class RoomPosted(TeamEvent):
    """somebody said something in a team's room"""

    type = "room_posted"
    says = "wrote in the room"
    post: int = note("its number")
    author: str

    @property
    def who(self) -> str:
        """The team and who wrote."""
        return f"#{self.team} {self.author}"


class KeyAdded(Event):
    """a key was made, or a browser let in"""

    type = "key_added"
    says = "a key was added"
    quiet = True
    key: str
    name: str


class KeyRevoked(Event):
    """a key was closed; who streams with it is cut off"""

    type = "key_revoked"
    says = "a key was revoked"
    quiet = True
    key: str
