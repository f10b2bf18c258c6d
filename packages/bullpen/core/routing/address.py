"""The address of a message: `@agent text`, `@team text`, or a default."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bullpen.core.errors import BadText, UnknownRecipient
from bullpen.core.routing.tags import (
    MAX_NAME_CHARS,
    Segment,
    Tag,
    TagKind,
    parse_tags,
    text_outside_tags,
)

_NAME_END = re.compile(r"\s++|[:,]|\Z")


@dataclass(frozen=True, slots=True)
class Recipient:
    """The agent that gets a text, and the team if it gets it as the leader."""

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
        # The first owner of a name keeps it: ids before display names, agents before teams.
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
        for names in (everyone, rooms):
            names.pop("", None)
        object.__setattr__(self, "_everyone", everyone)
        object.__setattr__(self, "_teams", rooms)

    def find(self, name: str) -> Recipient | None:
        """The agent, or the leader of the team, of this id or display name."""
        return self._everyone.get(_normalized(name))

    def find_team(self, name: str) -> str | None:
        """The id of the team of this id or display name."""
        return self._teams.get(_normalized(name))

    def find_prefix(self, text: str) -> tuple[Recipient, int] | None:
        """The recipient that the first line begins with, by the longest name, and where it ends."""
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
        """All names that can be addressed, in one line."""
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
    """The name as it is compared: case and spaces do not matter."""
    return " ".join(name.casefold().split())


def _format_name(name: str, display: str) -> str:
    return (
        f"@{name} ({display})"
        if _normalized(display) not in ("", _normalized(name))
        else f"@{name}"
    )


MAX_RECIPIENTS = 64
"""How many recipients one message may have."""

_UNKNOWN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*+(?=[\s:,]|\Z)")


@dataclass(frozen=True, slots=True)
class RoutedText:
    """A text for an agent, as a team's leader if `team` is set, or for a team's room."""

    text: str
    agent: str | None
    team: str | None
    room: str | None


def route_text(text: str, directory: AddressBook, default: str) -> tuple[RoutedText, ...]:
    """Split a message into parts by recipient; an unknown recipient refuses all of it."""
    prefixed = _route_by_prefix(text, directory)
    if prefixed is not None:
        return (prefixed,)
    # A file of the person's own is not sent by a tag: it stays what was written.
    segments = [
        each.source if isinstance(each, Tag) and each.kind is TagKind.FILE else each
        for each in parse_tags(text)
    ]
    tagged = tuple(_route_by_tags(segments, directory))
    return tagged or (_route_to(_require_recipient(default, directory), text),)


def _route_by_prefix(text: str, directory: AddressBook) -> RoutedText | None:
    """The message without the `@name` at its start, if it has one."""
    start = text.lstrip()
    if not start.startswith("@"):
        return None
    start = start[1:]
    if found := directory.find_prefix(start):
        recipient, end = found
        rest = start[end + 1 :] if start[end : end + 1] in (":", ",") else start[end:]
        return _route_to(recipient, rest.lstrip())
    if stranger := _UNKNOWN_NAME.match(start):
        _require_recipient(stranger[0], directory)
    return None


def _route_by_tags(segments: Sequence[Segment], directory: AddressBook) -> Iterator[RoutedText]:
    """The text for each name of each tag: what is outside of tags, then what is in the tag."""
    shared = text_outside_tags(segments)
    if sum(len(tag.to) for tag in segments if isinstance(tag, Tag)) > MAX_RECIPIENTS:
        raise BadText(
            f"the message is for more than {MAX_RECIPIENTS} at once", hint="Send it in parts."
        )
    for tag in segments:
        if isinstance(tag, str):
            continue
        text = f"{shared}\n\n{tag.text}" if shared else tag.text
        for name in dict.fromkeys(tag.to):
            if tag.kind is TagKind.ROOM:
                yield RoutedText(text, None, None, _require_room(name, directory))
            else:
                yield _route_to(_require_recipient(name, directory), text)


def _route_to(recipient: Recipient, text: str) -> RoutedText:
    return RoutedText(text, recipient.agent, recipient.team, None)


def _require_recipient(name: str, directory: AddressBook) -> Recipient:
    recipient = directory.find(name)
    if recipient is None:
        shortened = name[:MAX_NAME_CHARS]
        raise UnknownRecipient(f"there is nobody called @{shortened}", hint=directory.listing())
    return recipient


def _require_room(name: str, directory: AddressBook) -> str:
    team = directory.find_team(name)
    if team is None:
        raise UnknownRecipient(f"there is no room called #{name}", hint=directory.listing())
    return team
