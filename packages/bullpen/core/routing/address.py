"""To whom a person's message goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bullpen.core.errors import BadText, UnknownRecipient
from bullpen.core.routing.directory import AddressBook, Recipient
from bullpen.core.routing.tags import (
    MAX_NAME_CHARS,
    Segment,
    Tag,
    TagKind,
    parse_tags,
    text_outside_tags,
)

MAX_RECIPIENTS = 64
"""So many recipients one message has at the most."""

_UNKNOWN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*+(?=[\s:,]|\Z)")


@dataclass(frozen=True, slots=True)
class RoutedText:
    """A text on its way to an agent, as a team's leader if `team` is set, or to a team's room."""

    text: str
    agent: str | None
    team: str | None
    room: str | None


def route_text(text: str, directory: AddressBook, default: str) -> tuple[RoutedText, ...]:
    """What a message comes to: all of it is for somebody who exists, or nothing is sent."""
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
    """What each name of each tag gets: what is said to all, then what is said to it."""
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
    found = directory.find(name)
    if found is None:
        shown = name[:MAX_NAME_CHARS]
        raise UnknownRecipient(f"there is nobody called @{shown}", hint=directory.listing())
    return found


def _require_room(name: str, directory: AddressBook) -> str:
    found = directory.find_team(name)
    if found is None:
        raise UnknownRecipient(f"there is no room called #{name}", hint=directory.listing())
    return found
