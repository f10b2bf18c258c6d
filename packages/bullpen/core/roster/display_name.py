"""What people call an agent or a team: one line, which others read in their prompts."""

from __future__ import annotations

import unicodedata

from bullpen.core.errors import BadName
from bullpen.core.routing.tags import NAME_LENGTH
from bullpen.core.text import check_text

_BREAKS = ("Cc", "Zl", "Zp")


def check_display_name(name: str, limit: int) -> str:
    """The name, if it can be shown in a line and be written in a tag."""
    check_text(name, limit, "the name")
    if len(name) > NAME_LENGTH or any(unicodedata.category(each) in _BREAKS for each in name):
        raise BadName(
            f"{name[:40]!r} is too long for a name, or more than a line",
            hint=f"Give one line of at most {NAME_LENGTH} characters.",
        )
    return name
