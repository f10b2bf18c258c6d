"""The alphabet of SMS: what fits into it costs half as much as what does not."""

from __future__ import annotations

import re

from bullpen.channels.text.characters import utf16_length


def segments(text: str) -> int:
    """The number of SMS that the text is sent and charged as."""
    sizes = [_SEPTETS.get(each, 0) for each in text]
    if all(sizes):
        return _count(sizes, 160, 153)
    return _count([utf16_length(each) for each in text], 70, 67)


def fold(text: str) -> str:
    """The text in the alphabet, if typographic signs are all that keeps it out; else as it is."""
    if all(each in _SEPTETS for each in text):
        return text
    folded = _INVISIBLE.sub("", text).translate(_PLAIN)
    return folded if all(each in _SEPTETS for each in folded) else text


def _count(sizes: list[int], single: int, several: int) -> int:
    """The segments that characters of these sizes take; no character is cut in two."""
    if sum(sizes) <= single:
        return 1
    count, used = 1, 0
    for size in sizes:
        if used + size > several:
            count, used = count + 1, 0
        used += size
    return count


_BASIC = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    "ÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
_EXTENDED = "\f^{}\\[~]|€"
_SEPTETS = {**dict.fromkeys(_BASIC, 1), **dict.fromkeys(_EXTENDED, 2)}
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]")
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u2022\u2023\u25e6\u25aa\u00b7", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u200a\u202f\t", " "),
        "…": "...",
        "«": '"',
        "»": '"',
        "\u2039": "'",
        "\u203a": "'",
        "→": "->",
        "←": "<-",
        "⇒": "=>",
        "≤": "<=",
        "≥": ">=",
        "≠": "!=",
        "×": "x",
        "☐": "[ ]",
        "☑": "[x]",
    }
)
