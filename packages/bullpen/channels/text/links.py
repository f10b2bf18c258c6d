"""Links: which addresses an answer may link to, and whether a label claims to be another one."""

from __future__ import annotations

import re
import unicodedata

LONGEST_LINK = 1_000
"""The most characters of an address that is written out beside its label."""


def usable_link(address: str) -> str:
    """The address if people may be sent there, without credentials; otherwise empty.

    Only web addresses and e-mail addresses are links. Everything else, such as `javascript:`,
    `tg:` or a relative path, stays text.
    """
    if not _PRINTABLE.fullmatch(address):
        return ""
    if address[:7].lower() == "mailto:":
        return address if _MAIL.fullmatch(address[7:]) else ""
    found = _WEB.fullmatch(address)
    if found is None:
        return ""
    host = found["authority"].rpartition("@")[2]
    if not _HOST.fullmatch(host):
        return ""
    return f"{found['scheme'].lower()}://{host}{found['rest']}"


def host_of(address: str) -> str:
    """The host of a web address, or the domain of an e-mail address."""
    found = _WEB.fullmatch(address)
    if found is None:
        return address.rpartition("@")[2].partition("?")[0].lower()
    return re.sub(r":\d*$", "", found["authority"].rpartition("@")[2]).lower()


def short_link(address: str) -> str:
    """The address as text, or its host alone if it is too long to be written out."""
    return (
        address if len(address) <= LONGEST_LINK else f"{host_of(address)}/\N{HORIZONTAL ELLIPSIS}"
    )


def claims_another(label: str, address: str) -> bool:
    """Whether a link's label shows an address of another host than it leads to."""
    if len(label) > _LONGEST_LABEL:
        label = label[:_LONGEST_LABEL]
    shown = unicodedata.normalize("NFKC", label).replace("\N{IDEOGRAPHIC FULL STOP}", ".").lower()
    shown = "".join(each for each in shown if unicodedata.category(each) not in ("Cf", "Mn"))
    real = host_of(address).removeprefix("www.")
    return any(
        found["end"] not in _NO_DOMAINS and found["host"].removeprefix("www.") != real
        for found in _SHOWN_HOST.finditer(shown)
    )


def address_length(text: str, start: int, end: int) -> int:
    """The length of the web address that begins at `start`, without the punctuation after it."""
    found = _BARE.match(text, start, end)
    if found is None:
        return 0
    address = found[0]
    length = len(address)
    unopened = address.count(")") - address.count("(")
    while length:
        last = address[length - 1]
        if last == ")" and unopened > 0:
            unopened -= 1
        elif last not in _TRAILING:
            break
        length -= 1
    return length if length > address.index("//") + 2 else 0


_PRINTABLE = re.compile(r"[!-~]+")
_MAIL = re.compile(r"[^@<>\"]+@[A-Za-z0-9.-]+(\?[^<>\"]*)?")
_WEB = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<rest>.*)", re.IGNORECASE)
_HOST = re.compile(r"([A-Za-z0-9_](?:[A-Za-z0-9_.-]*)|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?")
_BARE = re.compile(r"https?://[!#-;=?-Z_a-z~]+", re.IGNORECASE)
_TRAILING = ".,;:!?'*_~"
_LONGEST_LABEL = 500
_SHOWN_HOST = re.compile(
    r"(?<![\w.-])(?P<host>(?:[\w-]{1,63}\.){1,8}(?P<end>[^\W\d_]{2,63}))(?![\w-])"
)
# Endings of file names that are no top-level domains: `Node.js` is not an address.
_NO_DOMAINS = frozenset(
    """
    js jsx ts tsx mjs json jsonl yaml yml toml txt html htm css scss cpp hpp java php csv tsv pdf
    png jpg jpeg gif svg webp xml ini cfg conf log sql ipynb exe dll lock diff patch docx xlsx
    pptx kt swift
    """.split()  # noqa: SIM905
)
