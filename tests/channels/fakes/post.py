"""What a person sees of the bot on any platform."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Post:
    """A message of the bot."""

    id: str
    text: str
    file: str = ""
    """The name of the file; empty for a message without one."""
    thread: str = ""
