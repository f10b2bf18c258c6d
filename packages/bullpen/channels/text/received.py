"""What people write, as plain text: pages of HTML, and texts that quote what they answer.

Each step takes time in proportion to the length of the text, whatever is in it.
"""

from __future__ import annotations

import re
from html import unescape

_BODY = re.compile(r"<body\b[^<>]*>", re.IGNORECASE)
_UNSEEN = re.compile(r"</?(?:script|style)\b[^<>]*>", re.IGNORECASE)
"""Every second piece between these is not shown."""
_BLOCK = re.compile(r"<(?:br|div|h\d|li|p|tr)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")


def text_of_html(page: str) -> str:
    """The text of a page: a line for each paragraph, list item and row, without links."""
    shown = "".join(_UNSEEN.split(_BODY.split(page)[-1])[::2])
    blocks = (" ".join(_TAG.sub("", each).split()) for each in _BLOCK.split(shown))
    return unescape("\n".join(filter(None, blocks)))


def without_quote(text: str) -> str:
    """The text without the lines at its end that quote another, and the line that names its author.

    Mail programs add them to each answer.
    """
    lines = text.rstrip().splitlines()
    if not lines or not lines[-1].startswith(">"):
        return text
    while lines and (lines[-1].startswith(">") or not lines[-1].strip()):
        lines.pop()
    if lines and lines[-1].endswith(":"):  # "Ann wrote:"
        lines.pop()
    return "\n".join(lines)
