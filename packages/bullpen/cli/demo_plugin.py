"""The answers of the demonstration's agents: a plugin for the provider `echo`.

Each cue is an agent, a text in its message, and the commands for the first attempt, the second and
so on.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

CUES = (
    (
        *("coder", "umlaut"),
        "!sleep 1\n!say I fixed the login and added a test. [@reviewer: Please review the fix.]",
    ),
    (
        *("reviewer", "review the fix"),
        "!sleep 1\n!say The fix is correct. [@writer: Please add a changelog line.]",
    ),
    (
        *("writer", "changelog"),
        "!sleep 1\n!fail",
        "!say Added to the changelog: Fixed the login for names with an umlaut.",
    ),
    ("coder", "Stand-up", "!say [#dev: I fixed the login.]"),
    ("reviewer", "Stand-up", "!say [#dev: I reviewed the fix. No reviews are pending.]"),
    ("writer", "Stand-up", "!say [#dev: I updated the changelog.]"),
    ("writer", "release notes", "!fail permanent", "!say The release notes are written."),
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
