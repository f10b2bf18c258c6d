"""/api/files: uploads and downloads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from flask import Response, request, send_file
from pydantic import BaseModel, Field
from werkzeug.datastructures import FileStorage
from werkzeug.formparser import FormDataParser

from bullpen.api.context import api, require_reach, write
from bullpen.api.route import ADMIN, PUBLISH, READ, Described, Routes
from bullpen.api.schemas import Answer, Done, Page, Rows
from bullpen.core.answers.attachments import RefusedFile, open_allowed, resolve_allowed
from bullpen.core.errors import BadRequest, UnknownFile
from bullpen.core.uploads import Upload, file_path, list_files, remove_file

routes = Routes("files", "What people send along, and what goes out with answers.")

FIELD = "file"

UPLOAD_BODY = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": [FIELD],
                "properties": {FIELD: {"type": "string", "format": "binary"}},
            }
        }
    },
}
MAX_FORM_PARTS = 8
MAX_FORM_TEXT_BYTES = 64 << 10
"""How much of the form's other fields is read."""

SANDBOX_POLICY = "sandbox; default-src 'none'"
"""Stops an uploaded page from doing anything in a browser."""

FileResponse = Annotated[
    Response,
    Described("The file.", "application/octet-stream", {"type": "string", "format": "binary"}),
]


class UploadedAnswer(Done):
    """The file is stored."""

    name: str = Field(description="what it is called from now on, in `files` of a message")
    path: str = Field(description="where it lies on the machine of the API")
    size: int
    sha256: str


class FileAnswer(Answer):
    """A file."""

    id: int = Field(description="when it was stored, in microseconds: the list's cursor")
    name: str
    size: int
    created_at: int


class FileList(Rows[FileAnswer]):
    """Files."""


class FilePath(BaseModel):
    """Which file."""

    name: str = Field(max_length=1000, description="the file's name")


@routes.post("/api/files", PUBLISH, request_body=UPLOAD_BODY)
def upload() -> UploadedAnswer:
    """Store a file, to be named in `files` of a message or of an answer.

    It gets a name of its own, so that none takes the place of another. The setting `upload_bytes`
    is the most that the request may have.
    """
    with _collect_uploads() as uploads:
        file_storage = _parse_form(uploads)
        saved = uploads[0].keep(api().store.ids, file_storage.filename or "")
        return UploadedAnswer.from_row(saved, path=str(saved.path))


@routes.get("/api/files", READ)
def files(query: Page) -> FileList:
    """List the files, the newest first; with `since_id` those after it, the oldest first.

    For keys that reach all agents.
    """
    require_reach(None)
    rows = list_files(api().settings.files, query.since_id, query.limit)
    return FileList.page(rows, query)


@routes.get("/api/files/<name>", READ, UnknownFile)
def file(path: FilePath) -> FileResponse:
    """Download a file. For keys that reach all agents."""
    require_reach(None)
    directory = api().settings.files
    return download(file_path(directory, path.name).name, (directory,))


@routes.delete("/api/files/<name>", ADMIN, UnknownFile)
def remove(path: FilePath) -> Done:
    """Delete a file for good; what names it goes out without it."""
    require_reach(None)
    with write():
        remove_file(api().settings.files, path.name)
    return Done()


def check_sendable(names: Sequence[str], roots: Sequence[Path] = ()) -> tuple[str, ...]:
    """The real paths of these uploaded files, or of those below an agent's directories.

    One that may not be sent is an error.
    """
    paths = [
        resolve_allowed(name, (*roots, api().settings.files)) for name in resolve_uploads(names)
    ]
    for each in paths:
        if isinstance(each, RefusedFile):
            raise UnknownFile(str(each))
    return tuple(str(each) for each in paths)


def resolve_uploads(names: Sequence[str]) -> tuple[str, ...]:
    """Replace names of uploaded files with their paths; a later check says which may be sent."""
    return tuple(str(_uploaded(name) or name) for name in names)


def download(path: str, roots: Sequence[Path]) -> Response:
    """Answer with this file as an attachment; one that may not be sent is an unknown file."""
    file = open_allowed(path, roots)
    if isinstance(file, RefusedFile):
        raise UnknownFile(str(file))
    name = "".join(each if each.isprintable() else "_" for each in Path(path).name)
    response = send_file(file, as_attachment=True, download_name=name, etag=False)
    response.content_length = os.fstat(file.fileno()).st_size
    response.headers["Content-Security-Policy"] = SANDBOX_POLICY
    response.headers["Cache-Control"] = "private, no-store"
    return response


@contextmanager
def _collect_uploads() -> Iterator[list[Upload]]:
    """Collect the uploads of a form; those that were not kept are deleted."""
    uploads: list[Upload] = []
    try:
        yield uploads
    finally:
        for each in uploads:
            each.drop()


def _parse_form(uploads: list[Upload]) -> FileStorage:
    """Read the form; its file goes straight to the disk."""

    def begin(*_: object, **__: object) -> Upload:
        uploads.append(Upload(api().settings.files))
        return uploads[-1]

    parser = FormDataParser(
        stream_factory=begin,  # type: ignore[arg-type] # it takes what the parser writes
        max_form_memory_size=MAX_FORM_TEXT_BYTES,
        max_form_parts=MAX_FORM_PARTS,
        silent=False,
    )
    try:
        _, _, fields = parser.parse(
            request.stream, request.mimetype, request.content_length, request.mimetype_params
        )
    except ValueError as error:
        raise BadRequest(f"the form cannot be read: {str(error)[:200]!a}") from None
    files = fields.getlist(FIELD)
    if len(files) != 1 or len(uploads) != 1:
        raise BadRequest(f"a form with one file is expected, in a field called `{FIELD}`")
    return files[0]


def _uploaded(name: str) -> Path | None:
    if "/" in name:
        return None
    path = api().settings.files / name
    try:
        return path if path.is_file() else None
    except OSError:
        return None
