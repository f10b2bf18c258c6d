"""To whom a person's message goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bullpen.core.errors import BadText, UnknownRecipient
from bullpen.core.routing.directory import Directory, Recipient
from bullpen.core.routing.tags import NAME_LENGTH, Segment, Tag, TagKind, outside, parse

MOST = 64
"""So many recipients one message has at the most."""

_STRANGER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*+(?=[\s:,]|\Z)")


@dataclass(frozen=True, slots=True)
class Addressed:
    """A text on its way to an agent, as a team's leader if `team` is set, or to a team's room."""

    text: str
    agent: str | None
    team: str | None
    room: str | None


def address(text: str, directory: Directory, default: str) -> tuple[Addressed, ...]:
    """What a message comes to: all of it is for somebody who exists, or nothing is sent."""
    prefixed = _prefixed(text, directory)
    if prefixed is not None:
        return (prefixed,)
    # A file of the person's own is not sent by a tag: it stays what was written.
    segments = [
        each.source if isinstance(each, Tag) and each.kind is TagKind.FILE else each
        for each in parse(text)
    ]
    tagged = tuple(_tagged(segments, directory))
    return tagged or (_to(_agent(default, directory), text),)


def _prefixed(text: str, directory: Directory) -> Addressed | None:
    """The message without the `@name` at its start, if it has one."""
    start = text.lstrip()
    if not start.startswith("@"):
        return None
    start = start[1:]
    if found := directory.find_first(start):
        recipient, end = found
        rest = start[end + 1 :] if start[end : end + 1] in (":", ",") else start[end:]
        return _to(recipient, rest.lstrip())
    if stranger := _STRANGER.match(start):
        _agent(stranger[0], directory)
    return None


def _tagged(segments: Sequence[Segment], directory: Directory) -> Iterator[Addressed]:
    """What each name of each tag gets: what is said to all, then what is said to it."""
    shared = outside(segments)
    if sum(len(tag.to) for tag in segments if isinstance(tag, Tag)) > MOST:
        raise BadText(f"the message is for more than {MOST} at once", hint="Send it in parts.")
    for tag in segments:
        if isinstance(tag, str):
            continue
        text = f"{shared}\n\n{tag.text}" if shared else tag.text
        for name in dict.fromkeys(tag.to):
            if tag.kind is TagKind.ROOM:
                yield Addressed(text, None, None, _room(name, directory))
            else:
                yield _to(_agent(name, directory), text)


def _to(recipient: Recipient, text: str) -> Addressed:
    return Addressed(text, recipient.agent, recipient.team, None)


def _agent(name: str, directory: Directory) -> Recipient:
    found = directory.find(name)
    if found is None:
        shown = name[:NAME_LENGTH]
        raise UnknownRecipient(f"there is nobody called @{shown}", hint=directory.listing())
    return found


def _room(name: str, directory: Directory) -> str:
    found = directory.find_team(name)
    if found is None:
        raise UnknownRecipient(f"there is no room called #{name}", hint=directory.listing())
    return found
