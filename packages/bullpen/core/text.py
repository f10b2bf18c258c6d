"""What text may be stored: UTF-8 without NUL, within the limit."""

from __future__ import annotations

from bullpen.core.errors import BadText, TextTooLong


def check_text(text: str, limit: int, what: str = "the message") -> str:
    """The text, if both databases can keep it and it is not over `limit` bytes."""
    if "\0" in text:
        raise BadText(f"{what} has a NUL character")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise BadText(f"{what} has half a surrogate pair at character {error.start}") from None
    if size > limit:
        raise TextTooLong(f"{what} has {size} bytes, over the limit of {limit}")
    return text
