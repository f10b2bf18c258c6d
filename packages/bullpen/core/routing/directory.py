"""Who can be addressed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_NAME_END = re.compile(r"\s++|[:,]|\Z")


@dataclass(frozen=True, slots=True)
class Recipient:
    """The agent that takes it, and the team that was named if it leads one."""

    agent: str
    team: str | None


@dataclass(frozen=True, slots=True)
class AddressBook:
    """The agents and teams that exist, by id; a team comes with its leader."""

    agents: Mapping[str, str]
    teams: Mapping[str, tuple[str, str]]
    _everyone: dict[str, Recipient] = field(init=False, repr=False, compare=False)
    _teams: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        agents = {agent: Recipient(agent, None) for agent in self.agents}
        leaders = {team: Recipient(leader, team) for team, (_, leader) in self.teams.items()}
        everyone: dict[str, Recipient] = {}
        rooms: dict[str, str] = {}
        # The first who has a name keeps it: ids before display names, agents before teams.
        for agent in self.agents:
            everyone.setdefault(_normalized(agent), agents[agent])
        for team in self.teams:
            everyone.setdefault(_normalized(team), leaders[team])
            rooms.setdefault(_normalized(team), team)
        for agent, name in self.agents.items():
            everyone.setdefault(_normalized(name), agents[agent])
        for team, (name, _) in self.teams.items():
            everyone.setdefault(_normalized(name), leaders[team])
            rooms.setdefault(_normalized(name), team)
        for known in (everyone, rooms):
            known.pop("", None)
        object.__setattr__(self, "_everyone", everyone)
        object.__setattr__(self, "_teams", rooms)

    def find(self, name: str) -> Recipient | None:
        """The agent, or the leader of the team, of this id or display name."""
        return self._everyone.get(_normalized(name))

    def find_team(self, name: str) -> str | None:
        """The id of the team of this id or display name."""
        return self._teams.get(_normalized(name))

    def find_prefix(self, text: str) -> tuple[Recipient, int] | None:
        """Whom the first line begins with, by the longest name, and where that name ends."""
        found: tuple[Recipient, int] | None = None
        if text[:1].isspace():
            return None
        longest = max(map(len, self._everyone), default=0)
        for end in _NAME_END.finditer(text):
            name = _normalized(text[: end.start()])
            if len(name) > longest:
                break
            if recipient := self._everyone.get(name):
                found = recipient, end.start()
            if "\n" in end[0]:
                break
        return found

    def listing(self) -> str:
        """All that can be addressed, in a line."""
        kinds = {
            "agents": self.agents,
            "teams": {team: name for team, (name, _) in self.teams.items()},
        }
        lists = (
            f"{kind}: " + ", ".join(_format_name(*each) for each in names.items())
            for kind, names in kinds.items()
            if names
        )
        return "; ".join(lists) or "there are no agents yet"

    def __str__(self) -> str:
        return self.listing()


def _normalized(name: str) -> str:
    """The name as it is compared."""
    return " ".join(name.casefold().split())


def _format_name(name: str, display: str) -> str:
    return (
        f"@{name} ({display})"
        if _normalized(display) not in ("", _normalized(name))
        else f"@{name}"
    )
