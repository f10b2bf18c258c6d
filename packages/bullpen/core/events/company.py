"""Events of lanes, agents, teams, rooms and API keys."""

from __future__ import annotations

from bullpen.core.events.base import AgentEvent, Event, Level, note
from bullpen.core.message import ErrorKind

_FAILURES = frozenset(each.value for each in ErrorKind)


class LanePaused(AgentEvent):
    """An agent was paused: its messages stay pending"""

    type = "lane_paused"
    level = Level.WARNING
    says = "was paused"
    reason: str | None

    def sentence(self) -> str:
        """Leave out the kind of the failure that paused the agent: the error says more."""
        kind, _, error = (self.reason or "").partition(": ")
        return f"{self.says}: {error}" if error and kind in _FAILURES else super().sentence()


class LaneResumed(AgentEvent):
    """An agent was resumed"""

    type = "lane_resumed"
    says = "was resumed"
    reason: str | None


class LaneDraining(AgentEvent):
    """An agent stopped accepting messages; it still answers the pending ones"""

    type = "lane_draining"
    says = "is draining"
    reason: str | None


class LaneArchived(AgentEvent):
    """The lane of an agent was closed"""

    type = "lane_archived"
    says = "was archived"
    bookkeeping = True
    reason: str | None


class AgentAdded(AgentEvent):
    """An agent was created"""

    type = "agent_added"
    says = "was created"
    bookkeeping = True


class AgentChanged(AgentEvent):
    """An agent was changed"""

    type = "agent_changed"
    says = "was changed ({changed})"
    bookkeeping = True
    changed: list[str] = note("names")


class AgentRemoved(AgentEvent):
    """An agent was removed"""

    type = "agent_removed"
    says = "was removed"
    bookkeeping = True


class TeamEvent(Event):
    """An event about a team."""

    team: str

    @property
    def who(self) -> str:
        """The team."""
        return f"#{self.team}"


class TeamAdded(TeamEvent):
    """A team was created"""

    type = "team_added"
    says = "was created"
    bookkeeping = True


class TeamChanged(TeamEvent):
    """A team was changed"""

    type = "team_changed"
    says = "was changed ({changed})"
    bookkeeping = True
    changed: list[str] = note("names")


class TeamRemoved(TeamEvent):
    """A team was removed"""

    type = "team_removed"
    says = "was removed"
    bookkeeping = True


class RoomPosted(TeamEvent):
    """A person or an agent posted in a team's room"""

    type = "room_posted"
    says = "posted in the room"
    post: int = note("its id")
    author: str

    @property
    def who(self) -> str:
        """The team and the author."""
        return f"#{self.team} {self.author}"


class KeyAdded(Event):
    """An API key was created, or a browser logged in"""

    type = "key_added"
    says = "API key {name} was created"
    quiet = True
    key: str
    name: str


class KeyRevoked(Event):
    """An API key was revoked; its streams are closed"""

    type = "key_revoked"
    says = "API key {key} was revoked"
    quiet = True
    key: str
