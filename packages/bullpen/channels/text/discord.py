"""Text for Discord: its own markdown, with everything escaped that is not meant as markup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from bullpen.channels.text.characters import ZERO_WIDTH_SPACE, is_blank, utf16_length
from bullpen.channels.text.layout import Laid, lay_out
from bullpen.channels.text.links import LONGEST_LINK
from bullpen.channels.text.markers import break_fences, mark_up, write_out_links
from bullpen.channels.text.tree import Code, Document, Paragraph, Span

LIMIT = 2_000
_TABLE_WIDTH = 76
_DEEPEST_HEADING = 3
_MARKERS = {"bold": "**", "italic": "*", "strike": "~~"}


def render_discord(document: Document) -> str:
    """The document as a message's `content`; empty if nobody would see anything of it."""
    if is_blank(document.text):
        return ""
    laid = lay_out(document, table_width=_TABLE_WIDTH, bullet="-")
    return "".join(each.with_margins(_content(each)) for each in laid).strip("\n")


def fits_discord(document: Document) -> bool:
    """Whether one message can carry the document."""
    return utf16_length(render_discord(document)) <= LIMIT


def _content(laid: Laid) -> str:
    content = laid.content
    if isinstance(content, Code):
        # Discord has no code inside of list items: the fence starts on a line of its own.
        text = f"```{content.language}\n{break_fences(content.text)}\n```"
        if laid.first.strip():
            text = f"{laid.first.rstrip()}\n{text}"
    elif isinstance(content, Paragraph):
        text = laid.first + _paragraph(content).replace("\n", "\n" + laid.rest)
    else:
        text = laid.first + 3 * content.text
    return text


def _paragraph(paragraph: Paragraph) -> str:
    spans = list(write_out_links(paragraph.inline.spans, _is_link))
    if paragraph.level > _DEEPEST_HEADING:
        spans = [replace(each, bold=True) for each in spans]
    text = _LINE_MARKUP.sub(r"\g<margin>\g<number>\\\g<marker>", _marked(spans))
    if 0 < paragraph.level <= _DEEPEST_HEADING:
        text = f"{'#' * paragraph.level} {text}".replace("\n", " ")
    return text


def _marked(spans: Sequence[Span]) -> str:
    return mark_up(spans, _MARKERS, _span, between=ZERO_WIDTH_SPACE)


def _is_link(address: str) -> bool:
    return address.startswith("http") and len(address) <= LONGEST_LINK


def _span(span: Span) -> str:
    address = span.link.replace("@", "%40")
    if span.bare:
        return f"<{address}>"  # in angle brackets, Discord shows no preview and no invitation
    text = _code(span.text) if span.code else _escape(span.text)
    return f"[{text.replace(chr(10), ' ')}](<{address}>)" if address else text


def _code(text: str) -> str:
    if "`" not in text:
        return f"`{text}`"
    apart = text.replace("``", f"`{ZERO_WIDTH_SPACE}`").replace("``", f"`{ZERO_WIDTH_SPACE}`")
    return f"`` {apart} ``"


def _escape(text: str) -> str:
    """The text with nothing in it that Discord takes for markup, a mention or an invitation."""
    return _MARKUP.sub(r"\\\g<0>", _LIVE.sub(rf"\g<0>{ZERO_WIDTH_SPACE}", text))


_MARKUP = re.compile(r"[\\*_`\[\]]|~(?=~)|(?<=~)~|\|(?=\|)|(?<=\|)\|")
_LINE_MARKUP = re.compile(
    r"^(?P<margin>[ \t]*)(?P<number>\d*)(?P<marker>(?<!\d)(?:#{1,3}(?=\s)|-(?=#?\s)|\+(?=\s)|>)"
    r"|(?<=\d)\.(?=\s))",
    re.MULTILINE,
)
# Mentions of everyone, people, roles and channels, commands, emoji, times; invitations.
_LIVE = re.compile(
    r"@(?=everyone|here)|<(?=[@#]|/[^<>\n]{1,120}:\d|(?:a|sound)?:\w+:|t:|id:)"
    r"|(?:discord\.gg|discord(?:app)?\.com/invite)/(?=\w)",
    re.IGNORECASE,
)
