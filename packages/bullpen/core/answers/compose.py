"""Parse the tags of an answer: handoffs, room posts, files, and the text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bullpen.core.routing.address import AddressBook
from bullpen.core.routing.tags import Tag, TagKind, parse_tags, render_tags, text_outside_tags

MAX_PARTS = 64
"""The most handoffs and posts of one answer."""


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
    """The text for people."""
    handoffs: tuple[Handoff, ...] = ()
    posts: tuple[Post, ...] = ()
    files: tuple[str, ...] = ()
    """The paths as written, not checked yet."""
    notes: tuple[str, ...] = ()
    """Notes about parts that were not sent, and why."""


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
                    f"not sent to {tag.kind}{name}: an answer has at most {MAX_PARTS} recipients"
                )
            elif tag.kind is TagKind.ROOM:
                team = book.find_team(name)
                if team is None or team not in rooms:
                    notes.append(f"not sent to #{name}: @{speaker} is in no team of that name")
                else:
                    posts.append(Post(team, body))
            else:
                recipient = book.find(name)
                if recipient is None:
                    notes.append(f"not sent to @{name}: this agent or team does not exist")
                elif recipient.agent == speaker:
                    notes.append(f"not sent to @{name}: that is @{speaker} itself")
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
