"""The lines of the demonstration's agents: a plugin for the provider `echo`.

Each cue is an agent, a text in its message, and what it does the first time, the second and so on.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

CUES = (
    (
        *("coder", "umlaut"),
        "!sleep 1\n!say It is mended, with a test. [@reviewer: Look at the fix, please.]",
    ),
    (
        *("reviewer", "at the fix"),
        "!sleep 1\n!say The fix is right. [@writer: A changelog line, please.]",
    ),
    (
        *("writer", "changelog"),
        "!sleep 1\n!fail",
        "!say Changelog: people with an umlaut in their name can log in.",
    ),
    ("coder", "Stand-up", "!say [#dev: The login is done.]"),
    ("reviewer", "Stand-up", "!say [#dev: Nothing waits for a review.]"),
    ("writer", "Stand-up", "!say [#dev: The changelog has a new line.]"),
    ("writer", "poster", "!fail permanent", "!say The poster hangs at the door."),
)
LISTENS = "!sleep 0"
ROOM = "chatroom"

_heard: Counter[str] = Counter()


class About(Protocol):
    """A message, as plugins see it."""

    agent: str
    channel: str
    message_id: str


def transform_incoming(text: str, about: About) -> str:
    """The commands for `echo` that answer this message."""
    for agent, cue, *takes in CUES:
        if agent == about.agent and cue in text:
            _heard[about.message_id] += 1
            return takes[min(_heard[about.message_id], len(takes)) - 1]
    return LISTENS if about.channel == ROOM else text
