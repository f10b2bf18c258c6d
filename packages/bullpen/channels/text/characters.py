"""Characters: refused by platforms, invisible, wide, or joined with the one before."""

from __future__ import annotations

import re
import unicodedata

from bullpen.core.text import ANSI_SEQUENCE

ZERO_WIDTH_SPACE = "\N{ZERO WIDTH SPACE}"
WORD_JOINER = "\N{WORD JOINER}"


def clean(text: str) -> str:
    """The text without the characters that a platform refuses, or that hide or reorder others.

    Line separators become newlines. Control characters, halves of surrogate pairs and
    noncharacters become `\N{REPLACEMENT CHARACTER}`. Marks that embed, override or isolate a
    direction are dropped, and so are invisible characters without a use in a chat; the joiners of
    emoji and of scripts stay.
    """
    if text.isascii() and not _ASCII_CONTROLS.search(text):
        return text
    text = ANSI_SEQUENCE.sub("", text)
    text = _LINE_ENDS.sub("\n", text)
    text = _DROPPED.sub("", text)
    return _REFUSED.sub("\N{REPLACEMENT CHARACTER}", text)


def is_blank(text: str) -> bool:
    """Whether nobody sees anything of the text; platforms refuse such a message as empty."""
    return blank_length(text) == len(text)


def blank_length(text: str) -> int:
    """The number of characters before the first that can be seen."""
    seen = _SEEN.search(text)
    return seen.start() if seen else len(text)


def utf16_length(text: str) -> int:
    """The number of UTF-16 units: characters outside of the basic plane count as two."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def width(text: str) -> int:
    """The columns that the text takes in a font of fixed width."""
    if text.isascii():
        return len(text)
    return sum(_columns(each) for each in text)


def clusters(text: str) -> list[int]:
    """The offsets at which the text may be cut without tearing what is seen as one character.

    An approximation of the grapheme clusters of Unicode: combining marks, emoji with modifiers,
    families and flags stay together. A longer cluster than any real one may be cut.
    """
    if text.isascii():
        return list(range(1, len(text) + 1))
    ends = []
    begin = flags = 0
    for offset in range(1, len(text)):
        before, after = text[offset - 1], text[offset]
        flags = flags + 1 if _is_flag(before) else 0
        joined = _extends(after) or before == _JOINER or (_is_flag(after) and flags % 2 == 1)
        if not joined or offset - begin >= _LONGEST_CLUSTER:
            ends.append(offset)
            begin = offset
    return [*ends, len(text)] if text else []


def _columns(char: str) -> int:
    if _extends(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _is_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _extends(char: str) -> bool:
    """Whether the character continues the one before it."""
    if char < "\u0300":
        return False
    return (
        unicodedata.category(char) in ("Mn", "Me", "Mc")
        or char in (_JOINER, "\u200c")
        or "\u1160" <= char <= "\u11ff"  # vowels and finals of Korean syllables
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # tags of regional flags
    )


_LONGEST_CLUSTER = 64
_JOINER = "\N{ZERO WIDTH JOINER}"
_ASCII_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_DROPPED = re.compile("[\u180e\u200b\u202a-\u202e\u2060-\u2069\u206a-\u206f\ufeff\ufff9-\ufffb]")
_REFUSED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
    + "]"
)
# Fillers and format characters take space or nothing, and show nothing.
_SEEN = re.compile(
    "[^\\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
