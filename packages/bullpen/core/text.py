"""Text: checked, sanitised for storage and for terminals, and with its secrets masked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

from bullpen.core.errors import BadText, TextTooLong


def check_text(text: str, limit: int, what: str = "the message") -> str:
    """The text, if both databases can store it and it has at most `limit` bytes."""
    if "\0" in text:
        raise BadText(f"{what} has a NUL character")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise BadText(f"{what} has an unpaired surrogate at character {error.start}") from None
    if size > limit:
        raise TextTooLong(f"{what} has {size} bytes, over the limit of {limit}")
    return text


def check_line(text: str, limit: int, what: str) -> str:
    """The text, if it is one line without control characters."""
    if _CONTROLS.search(check_text(text, limit, what)) or "\n" in text or "\t" in text:
        raise BadText(f"{what} has a control character", hint="Send one line of plain text.")
    return text


def visible(text: str) -> str:
    """The text as a terminal may have it: control characters become `\N{REPLACEMENT CHARACTER}`.

    They could move the cursor, set a title, write to the clipboard or reverse the text. Newlines
    and tabs stay; colours are taken out.
    """
    if text.isprintable() and not _CONTROLS.search(text):
        return text
    text = ANSI_SEQUENCE.sub("", text).replace("\r\n", "\n")
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def escape_controls(text: str) -> str:
    """The text with its control characters as escapes, such as `\\x1b`, for a log."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_line(text: str) -> str:
    """The text as `visible` shows it, in one line: runs of blanks and newlines are one blank."""
    return visible(" ".join(text.split()))


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, such as `1 message` or `3 messages`."""
    return f"{count} {noun}" if count == 1 else f"{count} {plural or noun + 's'}"


def sanitise_text(text: str) -> str:
    """The text with the characters replaced that no database can store."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


# C0 but newline and tab, DEL, C1, line and paragraph separators, marks that change the direction
# of text, and halves of surrogate pairs.
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
ANSI_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")

QUOTED_NAME_CHARS = 40
"""The most characters of a name that an error quotes."""


def nearest(name: str, known: Iterable[str], count: int) -> list[str]:
    """The known names that are most like a name, best first; case does not matter."""
    from difflib import get_close_matches  # only here: the command line starts without

    by_folded = {each.casefold(): each for each in known}
    close = get_close_matches(name[:QUOTED_NAME_CHARS].casefold(), by_folded, count)
    return [by_folded[each] for each in close]


def suggest(name: str, known: Iterable[str]) -> str:
    """`Did you mean 'coder'?` for the known name that is most like a name; "" if none is."""
    near = nearest(name, known, 1)
    return f"Did you mean {near[0]!r}?" if near else ""


def describe_unknown(noun: str, name: str, known: Iterable[str] = ()) -> str:
    """The text of an error: `agent 'codre' does not exist. Did you mean 'coder'?`"""
    text = f"{noun} {name[:QUOTED_NAME_CHARS]!r} does not exist"
    suggestion = suggest(name, known)
    return f"{text}. {suggestion}" if suggestion else text


MASK = "********"

# What SQLAlchemy reads as the password, and a password that was not URL-encoded.
_PASSWORD = re.compile(r"(?P<before>//[^:/?#@]*:)(?P<secret>[^@]*(?:@[^/?#@]*)*)(?P<after>@)")
_SECRET_NAME = re.compile(r"pass|secret|token|key|auth|sig", re.IGNORECASE)
_QUERY = re.compile(r"(?P<before>[?&;](?P<name>[^=&#;]*)=)(?P<secret>[^&#;]*)")


def mask(secret: str) -> str:
    """A mask if there is a secret, otherwise nothing."""
    return MASK if secret else ""


def mask_url(url: str) -> str:
    """The URL with its password masked, and everything in its query that looks like a secret."""
    return _QUERY.sub(_mask_value, _PASSWORD.sub(rf"\g<before>{MASK}\g<after>", url))


def url_secrets(url: str) -> tuple[str, ...]:
    """The secrets in a URL, as they are written there and decoded."""
    found = [each["secret"] for each in _PASSWORD.finditer(url)]
    found += [each["secret"] for each in _QUERY.finditer(url) if _SECRET_NAME.search(each["name"])]
    return tuple({each for secret in found for each in (secret, unquote(secret)) if each})


def _mask_value(found: re.Match[str]) -> str:
    if found["secret"] and _SECRET_NAME.search(found["name"]):
        return found["before"] + MASK
    return found[0]


HIDDEN = "[hidden]"
MIN_SECRET_CHARS = 6
"""Shorter secrets would be hidden in the middle of words."""
KEY_PREFIX = "bp_"
"""How a key of Bullpen begins."""
_KEY = re.compile(rf"{KEY_PREFIX}[A-Za-z0-9_-]{{32,}}")


class SecretMask:
    """Hides keys of Bullpen and known secrets in texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        given = [each for each in secrets if len(each) >= MIN_SECRET_CHARS]
        # The second and third form are those in the path and in the query of a URL.
        known = {form for each in given for form in (each, quote(each), quote(each, safe=""))}
        # Longer ones first: one may be the beginning of another.
        self._known = sorted(known, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text with its secrets hidden."""
        for each in self._known:
            text = text.replace(each, HIDDEN)
        return _KEY.sub(HIDDEN, text) if KEY_PREFIX in text else text
