"""The user's own part of an agent's AGENTS.md: what its prompt has besides Bullpen's part."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.errors import TextTooLong, UnknownFile
from bullpen.core.settings import Settings
from bullpen.core.text import check_text
from bullpen.core.workspace.confined import read_inside, write_inside
from bullpen.core.workspace.templates import PROTOCOL, protocol, split

OWN_TEXT = 100_000
"""So many characters of a file of the agent's are read into its prompt."""


@dataclass(frozen=True, slots=True)
class OwnText:
    """What is there."""

    text: str
    path: Path
    truncated: bool


def read_own_text(settings: Settings, agent: str) -> OwnText:
    """The user's part, as the prompt has it; nothing if there is no file that can be read."""
    path = settings.workspace / agent / PROTOCOL
    try:
        found = read_inside(settings.workspace, (agent, PROTOCOL))
    except UnknownFile:
        return OwnText("", path, truncated=False)
    before, _, after = split(found.text)
    parts = (each.strip() for each in (before, after))
    return OwnText("\n\n".join(filter(None, parts)), path, found.truncated)


def write_own_text(settings: Settings, agent: str, text: str) -> None:
    """Replace the user's part, and keep Bullpen's; one that was sent along is passed over."""
    check_text(text, settings.message_bytes, "the text")
    before, _, after = split(text)
    kept = _bullpens(settings, agent)
    whole = "\n\n".join(each.strip() for each in (kept, before, after) if each.strip()) + "\n"
    if len(whole) > OWN_TEXT:
        raise TextTooLong(
            f"AGENTS.md would have {len(whole)} characters, and {OWN_TEXT} are read",
            hint="Shorten it, or put parts of it into files that it names.",
        )
    write_inside(settings.workspace, (agent, PROTOCOL), whole)


def _bullpens(settings: Settings, agent: str) -> str:
    """Bullpen's part as it stands there; a user may have taken it out."""
    if not os.path.lexists(settings.workspace / agent / PROTOCOL):
        return protocol()
    try:
        there = read_inside(settings.workspace, (agent, PROTOCOL))
    except UnknownFile:
        return protocol()
    return split(there.text)[1] or (protocol() if there.truncated else "")
