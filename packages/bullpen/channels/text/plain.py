"""Text for WhatsApp, with its few markers, and for SMS, without any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from bullpen.channels.text.characters import is_blank, utf16_length
from bullpen.channels.text.gsm7 import fold
from bullpen.channels.text.gsm7 import segments as segments
from bullpen.channels.text.layout import Laid, lay_out
from bullpen.channels.text.markers import break_fences, mark_up, write_out_links
from bullpen.channels.text.tree import Code, Document, Paragraph, Span

LIMIT = 1_600
"""Twilio's limit of a body, for WhatsApp as well."""
_WHATSAPP_TABLE_WIDTH = 32
_MARKERS = {"bold": "*", "italic": "_", "strike": "~"}


def render_whatsapp(document: Document) -> str:
    """The document as a WhatsApp message; empty if nobody would see anything of it."""
    if is_blank(document.text):
        return ""
    laid = lay_out(document, table_width=_WHATSAPP_TABLE_WIDTH, bullet="-")
    return "".join(each.with_margins(_whatsapp(each)) for each in laid).strip("\n")


def fits_whatsapp(document: Document) -> bool:
    """Whether one message can carry the document."""
    return utf16_length(render_whatsapp(document)) <= LIMIT


def render_sms(document: Document) -> str:
    """The document as plain text, in the alphabet of SMS if nothing is lost by that."""
    if is_blank(document.text):
        return ""
    laid = lay_out(document, table_width=0, bullet="-")
    return fold("".join(each.with_margins(_sms(each)) for each in laid).strip("\n"))


def fits_sms(document: Document) -> bool:
    """Whether one message can carry the document."""
    return utf16_length(render_sms(document)) <= LIMIT


def _whatsapp(laid: Laid) -> str:
    content = laid.content
    if isinstance(content, Code):
        text = f"```{_fenced(content.text)}```"
        text = laid.first + (f"\n{text}" if laid.first.strip() else text)
    elif isinstance(content, Paragraph):
        spans = list(write_out_links(content.inline.spans, lambda address: False))
        if content.level:
            spans = [replace(each, bold=True) for each in spans]
        marked = break_fences(mark_up(list(_possible(spans)), _MARKERS, _code))
        text = laid.first + marked.replace("\n", "\n" + laid.rest)
    else:
        text = laid.first + 3 * content.text
    return text


def _fenced(text: str) -> str:
    """Code for a fence; WhatsApp has the fence beside the code, which may begin with backticks."""
    text = f" {text}" if text.startswith("`") else text
    return break_fences(f"{text} " if text.endswith("`") else text)


def _sms(laid: Laid) -> str:
    content = laid.content
    if isinstance(content, Code):
        text = content.text
    elif isinstance(content, Paragraph):
        spans = write_out_links(content.inline.spans, lambda address: False)
        text = "".join(each.text for each in spans)
    else:
        text = 3 * content.text
    return laid.first + text.replace("\n", "\n" + laid.rest)


def _code(span: Span) -> str:
    return f"`{span.text}`" if span.code and "`" not in span.text else span.text


def _possible(spans: Sequence[Span]) -> Iterator[Span]:
    """The spans without the styles whose markers WhatsApp would show as they are."""
    result = list(spans)
    for name, marker in _MARKERS.items():
        index = 0
        for on, group in groupby(list(result), key=lambda each: bool(getattr(each, name))):
            run = list(group)
            end = index + len(run)
            before = result[index - 1].text[-1:] if index else ""
            after = result[end].text[:1] if end < len(result) else ""
            if on and not _has_borders("".join(each.text for each in run), marker, before, after):
                result[index:end] = [_without(each, name) for each in run]
            index = end
    yield from result


def _without(span: Span, style: str) -> Span:
    return replace(
        span,
        bold=span.bold and style != "bold",
        italic=span.italic and style != "italic",
        strike=span.strike and style != "strike",
    )


def _has_borders(text: str, marker: str, before: str, after: str) -> bool:
    """Whether markers around the text have no letter outside, and no line end or marker inside."""
    inside = "\n" in text.strip() or marker in text
    left = before.isalnum() and not text[:1].isspace()
    right = after.isalnum() and not text[-1:].isspace()
    return not (inside or left or right)
