"""The stylesheet and the scripts of the pages, and Plotly from its package."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from flask import Response, request
from pydantic import BaseModel

from bullpen.api.route import NO_SCOPE, Described, Routes
from bullpen.core.errors import UnknownFile

routes = Routes("assets", "Files of the pages.")

STATIC = Path(__file__).with_name("static")
PLOTLY = "plotly.js"
TYPES = {".css": "text/css", ".js": "text/javascript"}
FOREVER = "private, max-age=31536000, immutable"
"""The address of a file has a checksum of its contents, so browsers may keep it."""


class AssetName(BaseModel):
    """The checksum and the name of a file."""

    checksum: str
    name: str


@routes.get("/assets/<checksum>/<name>", NO_SCOPE, UnknownFile)
def asset(path: AssetName) -> Annotated[Response, Described("The file.", "text/css")]:
    """Get a stylesheet or a script of the pages."""
    file = find_asset(path.name)
    if file is None or path.checksum != checksum(file):
        raise UnknownFile(f"there is no file {path.name[:60]!r} of the pages")
    response = Response(
        b"" if request.method == "HEAD" else file.read_bytes(), mimetype=TYPES[file.suffix]
    )
    response.headers["Cache-Control"] = FOREVER
    return response


def asset_address(name: str) -> str:
    """The address of a file of the pages."""
    file = find_asset(name)
    assert file is not None, name
    return f"/assets/{checksum(file)}/{name}"


def find_asset(name: str) -> Path | None:
    """The file of this name; only names that exist are ever joined to a path."""
    return _files().get(name)


@cache
def _files() -> dict[str, Path]:
    files = {each.name: each for each in STATIC.iterdir() if each.suffix in TYPES}
    spec = find_spec("plotly")  # its own import would take a second
    if spec is not None and spec.origin is not None:
        files[PLOTLY] = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    return files


@cache
def checksum(file: Path) -> str:
    """A short checksum of the contents of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]
