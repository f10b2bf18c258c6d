"""The user's own part of an agent's AGENTS.md: what its prompt has besides Bullpen's part."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.errors import TextTooLong, UnknownFile
from bullpen.core.settings import Settings
from bullpen.core.text import check_text
from bullpen.core.workspace.confined import read_inside, write_inside
from bullpen.core.workspace.templates import PROTOCOL_FILE, protocol_template, split_protocol

MAX_AGENTS_FILE_CHARS = 100_000
"""So many characters of a file of the agent's are read into its prompt."""


@dataclass(frozen=True, slots=True)
class UserInstructions:
    """What is there."""

    text: str
    path: Path
    truncated: bool


def read_user_instructions(settings: Settings, agent: str) -> UserInstructions:
    """The user's part, as the prompt has it; nothing if there is no file that can be read."""
    path = settings.workspace / agent / PROTOCOL_FILE
    try:
        found = read_inside(settings.workspace, (agent, PROTOCOL_FILE))
    except UnknownFile:
        return UserInstructions("", path, truncated=False)
    before, _, after = split_protocol(found.text)
    parts = (each.strip() for each in (before, after))
    return UserInstructions("\n\n".join(filter(None, parts)), path, found.truncated)


def write_user_instructions(settings: Settings, agent: str, text: str) -> None:
    """Replace the user's part, and keep Bullpen's; one that was sent along is passed over."""
    check_text(text, settings.message_bytes, "the text")
    before, _, after = split_protocol(text)
    kept = _current_protocol(settings, agent)
    whole = "\n\n".join(each.strip() for each in (kept, before, after) if each.strip()) + "\n"
    if len(whole) > MAX_AGENTS_FILE_CHARS:
        raise TextTooLong(
            f"AGENTS.md would have {len(whole)} characters, and {MAX_AGENTS_FILE_CHARS} are read",
            hint="Shorten it, or put parts of it into files that it names.",
        )
    write_inside(settings.workspace, (agent, PROTOCOL_FILE), whole)


def _current_protocol(settings: Settings, agent: str) -> str:
    """Bullpen's part as it stands there; a user may have taken it out."""
    if not os.path.lexists(settings.workspace / agent / PROTOCOL_FILE):
        return protocol_template()
    try:
        there = read_inside(settings.workspace, (agent, PROTOCOL_FILE))
    except UnknownFile:
        return protocol_template()
    return split_protocol(there.text)[1] or (protocol_template() if there.truncated else "")
