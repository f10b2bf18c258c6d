"""What people call an agent or a team: one line, which others read in their prompts."""

from __future__ import annotations

import unicodedata

from bullpen.core.errors import BadName
from bullpen.core.routing.tags import MAX_NAME_CHARS
from bullpen.core.text import check_text

_LINE_BREAK_CATEGORIES = ("Cc", "Zl", "Zp")


def check_display_name(name: str, limit: int) -> str:
    """The name, if it can be shown in a line and be written in a tag."""
    check_text(name, limit, "the name")
    if len(name) > MAX_NAME_CHARS or any(
        unicodedata.category(each) in _LINE_BREAK_CATEGORIES for each in name
    ):
        raise BadName(
            f"{name[:40]!r} is too long for a name, or more than a line",
            hint=f"Give one line of at most {MAX_NAME_CHARS} characters.",
        )
    return name
