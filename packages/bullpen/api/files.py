"""The files of people and agents: where they lie, which may be named, and how one is handed out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flask import Response, send_file

from bullpen.api.context import api
from bullpen.core.answers.files import RefusedFile, resolve_allowed
from bullpen.core.answers.open import open_allowed
from bullpen.core.errors import UnknownFile

FILE: dict[str, Any] = {
    "description": "The file.",
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}
"""An answer that is a file, as the API's description has it."""

ALONE = "sandbox; default-src 'none'"
"""A page that somebody uploaded does nothing in a browser."""


def sendable(names: Sequence[str], roots: Sequence[Path] = ()) -> tuple[str, ...]:
    """The real paths of these uploaded files, or of those below an agent's directories.

    One that may not be sent is an error.
    """
    found = [resolve_allowed(name, (*roots, api().settings.files)) for name in named(names)]
    for each in found:
        if isinstance(each, RefusedFile):
            raise UnknownFile(str(each))
    return tuple(str(each) for each in found)


def named(names: Sequence[str]) -> tuple[str, ...]:
    """The same names; of uploaded files, where they lie. Which of them may leave is seen later."""
    return tuple(str(_uploaded(name) or name) for name in names)


def download(path: str, roots: Sequence[Path]) -> Response:
    """This file, to be kept and not to be shown; one that may not leave is not there."""
    found = open_allowed(path, roots)
    if isinstance(found, RefusedFile):
        raise UnknownFile(str(found))
    name = "".join(each if each.isprintable() else "_" for each in Path(path).name)
    response = send_file(found, as_attachment=True, download_name=name, etag=False)
    response.content_length = os.fstat(found.fileno()).st_size
    response.headers["Content-Security-Policy"] = ALONE
    response.headers["Cache-Control"] = "private, no-store"
    return response


def _uploaded(name: str) -> Path | None:
    if "/" in name:
        return None
    path = api().settings.files / name
    try:
        return path if path.is_file() else None
    except OSError:
        return None
