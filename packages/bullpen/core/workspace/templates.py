"""Create and refresh an agent's directory from the shipped templates, keeping the user's text.

The hash of each written file is recorded. A file with another hash was changed by the user.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bullpen.core.errors import InTheWay, TextTooLong, UnknownFile
from bullpen.core.settings import Settings
from bullpen.core.text import check_text
from bullpen.core.workspace.safe_files import (
    link_inside,
    make_directory_inside,
    read_bytes_inside,
    read_inside,
    write_inside,
)

log = logging.getLogger(__name__)

TEMPLATES_DIRECTORY = Path(__file__).resolve().parent / "shipped"
MANIFEST = Path(".bullpen", "templates.json")
CREATED_MARKER = Path(".bullpen", "made_by_bullpen")
"""Marks a directory that Bullpen created and can therefore delete."""
SKILLS_LINK = Path(".claude", "skills")
PROTOCOL_BEGIN = "<!-- bullpen: the protocol."
PROTOCOL_END = "<!-- bullpen: end of the protocol -->"
PROTOCOL_FILE = "AGENTS.md"
MAX_TEMPLATE_BYTES = 1 << 20
"""A larger file is not a template."""
TEMPLATE_MODE = 0o644
MAX_AGENTS_FILE_CHARS = 100_000
"""The most characters of a file in a prompt."""


def write_templates(home: Path) -> list[str]:
    """Write the missing and outdated templates to a directory, unless it is a link.

    Returns their names.
    """
    if home.is_symlink():
        return []
    made = not home.exists()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    for each in ("memory", "skills", ".bullpen", ".claude"):
        if not (home / each).is_symlink():
            make_directory_inside(home.parent, _parts(home, each))
    if made:
        (home / CREATED_MARKER).touch()
    written = _update_files(home)
    link = home / SKILLS_LINK
    if not os.path.lexists(link) and not _leads_outside(home, str(SKILLS_LINK)):
        link_inside(home.parent, _parts(home, str(SKILLS_LINK)), Path("..", "skills"))
    return written


@cache
def templates() -> tuple[tuple[str, str], ...]:
    """Every shipped file: its path below the agent's directory, and its text."""
    return tuple(_load_templates())


def _load_templates() -> Iterator[tuple[str, str]]:
    for path in sorted(TEMPLATES_DIRECTORY.rglob("*.md")):
        yield str(path.relative_to(TEMPLATES_DIRECTORY)), path.read_text(encoding="utf-8")


def protocol_template() -> str:
    """Bullpen's part of the shipped AGENTS.md."""
    return split_protocol(dict(templates())[PROTOCOL_FILE])[1]


def split_protocol(text: str) -> tuple[str, str, str]:
    """The three parts of an AGENTS.md: before Bullpen's part, that part, and after it."""
    start = text.find(PROTOCOL_BEGIN)
    end = text.find(PROTOCOL_END, start)
    if start < 0 or end < 0:
        return text, "", ""
    end += len(PROTOCOL_END)
    return text[:start], text[start:end], text[end:]


def _update_files(home: Path) -> list[str]:
    known = _manifest(home)
    before = dict(known)
    written = []
    for name, text in templates():
        if known.get(name) == _hash(text) or _leads_outside(home, name):
            continue
        there = _current_text(home, name)
        new = _updated_text(name, text, there, known.get(name))
        if new is not None:
            _write(home, name, new)
            written.append(name)
        # This includes a file whose hash was not recorded because the process was killed.
        if new is not None or there == text:
            known[name] = _hash(text)
    if known != before and not _leads_outside(home, str(MANIFEST)):
        _write(home, str(MANIFEST), json.dumps(known, indent=1, sort_keys=True))
    return written


def _leads_outside(home: Path, name: str) -> bool:
    """Whether a parent of the file is a link, which could point outside of the directory."""
    return any((home / each).is_symlink() for each in Path(name).parents[:-1])


def _updated_text(name: str, text: str, there: str | None, known: str | None) -> str | None:
    """The new text of a file; None if it stays as it is."""
    if there is None:
        # A file that was written before and does not exist was removed on purpose.
        return text if known is None else None
    if _hash(there) == known:
        return text
    if name == PROTOCOL_FILE:
        before, own, after = split_protocol(there)
        new = split_protocol(text)[1]
        return before + new + after if own not in ("", new) else None
    return None


def _hash(text: str) -> str:
    # The bytes of a text that was read, valid UTF-8 or not.
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _current_text(home: Path, name: str) -> str | None:
    """The text of a file; None if it is missing, empty if it cannot be a template."""
    if not os.path.lexists(home / name):
        return None
    try:
        found = read_bytes_inside(home.parent, _parts(home, name), MAX_TEMPLATE_BYTES)
    except UnknownFile:
        return ""
    return "" if len(found) > MAX_TEMPLATE_BYTES else found.decode(errors="surrogateescape")


def _manifest(home: Path) -> dict[str, str]:
    try:
        parts = _parts(home, str(MANIFEST))
        found = json.loads(read_inside(home.parent, parts, MAX_TEMPLATE_BYTES).text)
    except (UnknownFile, ValueError, RecursionError):
        return {}
    return {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}


def _write(home: Path, name: str, text: str) -> None:
    write_inside(home.parent, _parts(home, name), text, TEMPLATE_MODE, template=True)


def _parts(home: Path, name: str) -> tuple[str, ...]:
    """The file's path below the parent of the agent's directory, which may itself become a link."""
    return (home.name, *Path(name).parts)


@dataclass(frozen=True, slots=True)
class UserInstructions:
    """The user's part of an AGENTS.md."""

    text: str
    path: Path
    truncated: bool


def read_user_instructions(settings: Settings, agent: str) -> UserInstructions:
    """The user's part of AGENTS.md; empty if the file cannot be read."""
    path = settings.workspace / agent / PROTOCOL_FILE
    try:
        found = read_inside(settings.workspace, (agent, PROTOCOL_FILE))
    except UnknownFile:
        return UserInstructions("", path, truncated=False)
    before, _, after = split_protocol(found.text)
    parts = (each.strip() for each in (before, after))
    return UserInstructions("\n\n".join(filter(None, parts)), path, found.truncated)


def write_user_instructions(settings: Settings, agent: str, text: str) -> None:
    """Replace the user's part of AGENTS.md; Bullpen's part in the new text is ignored."""
    check_text(text, settings.message_bytes, "the text")
    before, _, after = split_protocol(text)
    kept = _current_protocol(settings, agent)
    whole = "\n\n".join(each.strip() for each in (kept, before, after) if each.strip()) + "\n"
    if len(whole) > MAX_AGENTS_FILE_CHARS:
        raise TextTooLong(
            f"AGENTS.md would have {len(whole)} characters; the limit is {MAX_AGENTS_FILE_CHARS}",
            hint="Shorten it, or move parts of it into other files and name them.",
        )
    write_inside(settings.workspace, (agent, PROTOCOL_FILE), whole)


def _current_protocol(settings: Settings, agent: str) -> str:
    """Bullpen's part of the file; empty if the user removed it."""
    if not os.path.lexists(settings.workspace / agent / PROTOCOL_FILE):
        return protocol_template()
    try:
        there = read_inside(settings.workspace, (agent, PROTOCOL_FILE))
    except UnknownFile:
        return protocol_template()
    return split_protocol(there.text)[1] or (protocol_template() if there.truncated else "")


def prepare_directory(settings: Settings, agent: str) -> bool:
    """Write the templates to an agent's directory; false if none was written, or on an error."""
    home = settings.workspace / agent
    try:
        return bool(write_templates(home))
    except (OSError, InTheWay) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        log.warning("cannot write templates to the directory of @%s: %s", agent, reason)
        return False
