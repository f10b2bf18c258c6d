"""The address of a message: `@agent text`, `@team text`, or a default."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bullpen.core.errors import BadText, UnknownRecipient
from bullpen.core.routing.tags import (
    Segment,
    Tag,
    TagKind,
    parse_tags,
    text_outside_tags,
)
from bullpen.core.text import describe_unknown, nearest

MAX_RECIPIENTS = 64
"""The most recipients of one message."""

MAX_LISTED = 10
"""The most names in the hint about an unknown one."""

_UNKNOWN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*+(?=[\s:,]|\Z)")

_MENTION = re.compile(r"(?<![\w@/.`])@([A-Za-z0-9][A-Za-z0-9_-]*)")

_NAME_END = re.compile(r"\s++|[:,]|\Z")


@dataclass(frozen=True, slots=True)
class Recipient:
    """The agent that gets a text, and the team if it gets the text as the leader."""

    agent: str
    team: str | None


@dataclass(frozen=True, slots=True)
class AddressBook:
    """All agents and teams, and the recipient of each of their names."""

    agents: Mapping[str, str]
    """Display names by id."""
    teams: Mapping[str, tuple[str, str]]
    """Display names and leaders by id."""
    _recipients: dict[str, Recipient] = field(init=False, repr=False, compare=False)
    """By normalized id and display name."""
    _team_ids: dict[str, str] = field(init=False, repr=False, compare=False)
    """By normalized id and display name."""

    def __post_init__(self) -> None:
        agents = {agent: Recipient(agent, None) for agent in self.agents}
        leaders = {team: Recipient(leader, team) for team, (_, leader) in self.teams.items()}
        recipients: dict[str, Recipient] = {}
        team_ids: dict[str, str] = {}
        # Of two equal names the first one counts: ids before display names, agents before teams.
        for agent in self.agents:
            recipients.setdefault(_normalized(agent), agents[agent])
        for team in self.teams:
            recipients.setdefault(_normalized(team), leaders[team])
            team_ids.setdefault(_normalized(team), team)
        for agent, name in self.agents.items():
            recipients.setdefault(_normalized(name), agents[agent])
        for team, (name, _) in self.teams.items():
            recipients.setdefault(_normalized(name), leaders[team])
            team_ids.setdefault(_normalized(name), team)
        for names in (recipients, team_ids):
            names.pop("", None)
        object.__setattr__(self, "_recipients", recipients)
        object.__setattr__(self, "_team_ids", team_ids)

    def find(self, name: str) -> Recipient | None:
        """The agent, or the leader of the team, of this id or display name."""
        return self._recipients.get(_normalized(name))

    def find_team(self, name: str) -> str | None:
        """The id of the team of this id or display name."""
        return self._team_ids.get(_normalized(name))

    def find_prefix(self, text: str) -> tuple[Recipient, int] | None:
        """The recipient with the longest name that begins the first line, and the name's end."""
        longest_match: tuple[Recipient, int] | None = None
        if text[:1].isspace():
            return None
        max_chars = max(map(len, self._recipients), default=0)
        for end in _NAME_END.finditer(text):
            name = _normalized(text[: end.start()])
            if len(name) > max_chars:
                break
            if recipient := self._recipients.get(name):
                longest_match = recipient, end.start()
            if "\n" in end[0]:
                break
        return longest_match

    def listing(self, meant: str) -> str:
        """All names in one line; of many, those most similar to the given name."""
        kinds = {
            "Agents": self.agents,
            "Teams": {team: name for team, (name, _) in self.teams.items()},
        }
        near = _nearest(meant, [(*each, kind) for kind in kinds for each in kinds[kind].items()])
        lists = (
            f"{kind}: " + ", ".join(_format_name(*each) for *each, its in near if its == kind)
            for kind in kinds
            if any(its == kind for *_, its in near)
        )
        rest = len(self.agents) + len(self.teams) - len(near)
        more = f", and {rest} more" if rest else ""
        if not near:
            return "There are no agents yet. Run `bullpen agent add coder` to create one."
        return ". ".join(lists) + more + "."

    def names(self) -> Iterator[str]:
        """All ids and display names."""
        yield from (*self.agents, *self.agents.values(), *self.team_names())

    def team_names(self) -> Iterator[str]:
        """The ids and display names of the teams."""
        yield from (*self.teams, *(name for name, _ in self.teams.values()))


@dataclass(frozen=True, slots=True)
class RoutedText:
    """A text for an agent, as a team's leader if `team` is set, or for a team's room."""

    text: str
    agent: str | None
    team: str | None
    room: str | None


def route_text(text: str, book: AddressBook, default: str) -> tuple[RoutedText, ...]:
    """Split a message into parts by recipient; raises `UnknownRecipient`."""
    prefixed = _route_by_prefix(text, book)
    if prefixed is not None:
        return (prefixed,)
    # File tags are for agents; in a person's message they are plain text.
    segments = [
        each.source if isinstance(each, Tag) and each.kind is TagKind.FILE else each
        for each in parse_tags(text)
    ]
    tagged = tuple(_route_by_tags(segments, book))
    return tagged or (_route_to(_require_recipient(default, book), text),)


def find_ignored_mention(text: str, book: AddressBook) -> str | None:
    """The first known name in a text that addresses nobody: only the start and tags do."""
    if text.lstrip().startswith("@") or any(isinstance(each, Tag) for each in parse_tags(text)):
        return None
    names = (found[1] for found in _MENTION.finditer(text))
    return next((each for each in names if book.find(each) is not None), None)


def _route_by_prefix(text: str, book: AddressBook) -> RoutedText | None:
    """The message without the `@name` at its start, if it has one."""
    start = text.lstrip()
    if not start.startswith("@"):
        return None
    start = start[1:]
    if match := book.find_prefix(start):
        recipient, end = match
        rest = start[end + 1 :] if start[end : end + 1] in (":", ",") else start[end:]
        return _route_to(recipient, rest.lstrip())
    if stranger := _UNKNOWN_NAME.match(start):
        _require_recipient(stranger[0], book)
    return None


def _route_by_tags(segments: Sequence[Segment], book: AddressBook) -> Iterator[RoutedText]:
    """The text for each name in each tag: the text outside of all tags, then that of the tag."""
    shared = text_outside_tags(segments)
    if sum(len(tag.to) for tag in segments if isinstance(tag, Tag)) > MAX_RECIPIENTS:
        raise BadText(
            f"the message has more than {MAX_RECIPIENTS} recipients",
            hint="Send it in several messages.",
        )
    for tag in segments:
        if isinstance(tag, str):
            continue
        text = f"{shared}\n\n{tag.text}" if shared else tag.text
        for name in dict.fromkeys(tag.to):
            if tag.kind is TagKind.ROOM:
                yield RoutedText(text, None, None, _require_room(name, book))
            else:
                yield _route_to(_require_recipient(name, book), text)


def _route_to(recipient: Recipient, text: str) -> RoutedText:
    return RoutedText(text, recipient.agent, recipient.team, None)


def _require_recipient(name: str, book: AddressBook) -> Recipient:
    recipient = book.find(name)
    if recipient is None:
        text = describe_unknown("agent or team", name, book.names())
        raise UnknownRecipient(text, hint=book.listing(name))
    return recipient


def _require_room(name: str, book: AddressBook) -> str:
    team = book.find_team(name)
    if team is None:
        text = describe_unknown("room", name, book.team_names())
        raise UnknownRecipient(text, hint=book.listing(name))
    return team


def _normalized(name: str) -> str:
    """The name for comparisons, which ignore case and extra spaces."""
    return " ".join(name.casefold().split())


def _nearest(meant: str, names: Sequence[tuple[str, str, str]]) -> Sequence[tuple[str, str, str]]:
    """All of these ids, display names and kinds; of many, those most similar to the given name."""
    if len(names) <= MAX_LISTED:
        return names
    owners = {name: each for each in reversed(names) for name in each[1::-1] if name}
    near = [owners[name] for name in nearest(meant, owners, MAX_LISTED)]
    return list(dict.fromkeys([*near, *names]))[:MAX_LISTED]


def _format_name(name: str, display: str) -> str:
    return (
        f"@{name} ({display})"
        if _normalized(display) not in ("", _normalized(name))
        else f"@{name}"
    )
