"""The media types of files: by their first bytes, then by their name."""

from __future__ import annotations

import mimetypes

UNKNOWN_TYPE = "application/octet-stream"
WEB_PAGE = "text/html"

_SIGNATURES = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"OggS", "audio/ogg"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"#!AMR", "audio/amr"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1a\x45\xdf\xa3", "video/webm"),
    (0, b"BEGIN:VCARD", "text/vcard"),
)
_PAGE_STARTS = (b"<!doctype html", b"<html", b"<head", b"<script")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def file_type(head: bytes, name: str) -> str:
    """The media type of a file with these first bytes and this name."""
    for at, signature, found in _SIGNATURES:
        if head[at : at + len(signature)] == signature:
            return found
    if _begins_as_page(head):
        return WEB_PAGE
    return type_by_name(name)


def type_by_name(name: str) -> str:
    """The media type of a file with this name."""
    return mimetypes.guess_type(name)[0] or UNKNOWN_TYPE


def is_web_page(head: bytes, declared: str) -> bool:
    """Whether a body with these first bytes and this declared type is a web page."""
    return declared.lower() == WEB_PAGE or _begins_as_page(head)


def _begins_as_page(head: bytes) -> bool:
    return head.removeprefix(_BYTE_ORDER_MARK).lstrip().lower().startswith(_PAGE_STARTS)
