"""Parse the tags of an answer: handoffs, room posts, files, and the text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bullpen.core.routing.address import AddressBook
from bullpen.core.routing.tags import Tag, TagKind, parse_tags, render_tags, text_outside_tags

MAX_PARTS = 64
"""How many handoffs and posts one answer may have."""


@dataclass(frozen=True, slots=True)
class Handoff:
    """A text for another agent."""

    agent: str
    team: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Post:
    """A text for a team's room."""

    team: str
    text: str


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """The parts of an answer."""

    text: str
    """What people read."""
    handoffs: tuple[Handoff, ...] = ()
    posts: tuple[Post, ...] = ()
    files: tuple[str, ...] = ()
    """The paths as they were written; not checked yet."""
    notes: tuple[str, ...] = ()
    """What could not be done, and why."""


def parse_answer(
    text: str, speaker: str, book: AddressBook, rooms: Mapping[str, object]
) -> ParsedAnswer:
    """Parse an answer; `rooms` are the teams in whose rooms the speaker may post."""
    segments = parse_tags(text)
    tags = [each for each in segments if isinstance(each, Tag)]
    shared = text_outside_tags(segments)
    handoffs: list[Handoff] = []
    posts: list[Post] = []
    notes: list[str] = []
    for tag in tags:
        body = f"{shared}\n\n{tag.text}" if shared else tag.text
        for name in dict.fromkeys(tag.to):
            if len(handoffs) + len(posts) >= MAX_PARTS:
                notes.append(
                    f"{tag.kind}{name} was not told: an answer has at most {MAX_PARTS} parts"
                )
            elif tag.kind is TagKind.ROOM:
                team = book.find_team(name)
                if team is None or team not in rooms:
                    notes.append(f"#{name} was not told: it is no room of @{speaker}'s")
                else:
                    posts.append(Post(team, body))
            else:
                recipient = book.find(name)
                if recipient is None:
                    notes.append(f"@{name} was not told: there is nobody of that name")
                elif recipient.agent == speaker:
                    notes.append(f"@{name} was not told: that is @{speaker} itself")
                else:
                    handoffs.append(Handoff(recipient.agent, recipient.team, body))
    return ParsedAnswer(
        text=render_tags(segments, speaker).strip(),
        handoffs=tuple(handoffs),
        posts=tuple(posts),
        files=_files(tags),
        notes=tuple(dict.fromkeys(notes)),
    )


def _files(tags: Sequence[Tag]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag.text for tag in tags if tag.kind is TagKind.FILE))
