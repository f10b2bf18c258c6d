"""/api/files: uploads and downloads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

from flask import Response, request, send_file
from pydantic import BaseModel, Field
from werkzeug.datastructures import FileStorage
from werkzeug.formparser import FormDataParser

from bullpen.api.context import api, caller, read, require_reach, write
from bullpen.api.route import ADMIN, PUBLISH, READ, Described, Routes
from bullpen.api.schemas import Answer, Done, Page, Rows
from bullpen.core.access.keys import Key, KeyKind
from bullpen.core.answers.attachments import RefusedFile, open_allowed, resolve_allowed
from bullpen.core.errors import BadRequest, OutOfReach, UnknownFile, UploadQuotaExceeded
from bullpen.core.file_records import (
    check_quota,
    forget_files,
    is_upload_of,
    is_used_by,
    record_upload,
)
from bullpen.core.files import require_free_space
from bullpen.core.roster.agents import files_root
from bullpen.core.store.transaction import Transaction
from bullpen.core.uploads import Upload, check_file_name, list_files, remove_file
from bullpen.core.workspace.safe_files import Root, open_inside

routes = Routes("files", "Files of messages and responses.")

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
"""The maximum size of the form's other fields."""

SANDBOX_POLICY = "sandbox; default-src 'none'"
"""Prevents an uploaded page from running scripts in a browser."""

FileResponse = Annotated[
    Response,
    Described("The file.", "application/octet-stream", {"type": "string", "format": "binary"}),
]


class UploadedAnswer(Done):
    """The stored file."""

    name: str = Field(description="The file's new name, for `files` of a message.")
    path: str = Field(description="The file's path on the machine of the API.")
    size: int
    sha256: str


class FileAnswer(Answer):
    """A file."""

    id: int = Field(description="The time of the upload in microseconds; the cursor of the list.")
    name: str
    size: int
    created_at: int


class FileList(Rows[FileAnswer]):
    """Files."""


class FilePath(BaseModel):
    """Selects a file."""

    name: str = Field(max_length=1000, description="The file's name.")


@routes.post("/api/files", PUBLISH, UploadQuotaExceeded, request_body=UPLOAD_BODY)
def upload() -> UploadedAnswer:
    """Upload a file for `files` of a message or response.

    The file gets a new unique name. The setting `upload_bytes` limits the request, and
    `key_upload_bytes` limits the stored files of one key.
    """
    settings, key = api().settings, caller()
    counted = key.kind is not KeyKind.OWNER
    size = request.content_length or 0
    require_free_space(settings.home, settings.free_bytes_floor, size)
    if counted:
        with read() as tx:
            check_quota(tx, key.id, size)
    with _collect_uploads() as uploads:
        file_storage = _parse_form(uploads)
        saved = uploads[0].keep(api().store.ids, file_storage.filename or "")
        if counted:
            try:
                with write() as tx:
                    record_upload(tx, key.id, saved.name, saved.size)
            except BaseException:
                saved.path.unlink(missing_ok=True)
                raise
        return UploadedAnswer.from_row(saved, path=str(saved.path))


@routes.get("/api/files", READ)
def files(query: Page) -> FileList:
    """List files.

    Newest first; with `since_id`, the later ones, oldest first. Requires a key that reaches all
    agents.
    """
    require_reach(None)
    rows = list_files(api().settings.files, query.since_id, query.limit)
    return FileList.page(rows, query)


@routes.get("/api/files/<name>", READ, UnknownFile)
def file(path: FilePath) -> FileResponse:
    """Download a file.

    Requires a key that reaches all agents.
    """
    require_reach(None)
    root = files_root(api().settings)
    try:
        opened = open_inside(root.anchor, (*root.parts, check_file_name(path.name)))
    except (OSError, ValueError):
        raise UnknownFile(f"file {path.name[:60]!a} does not exist") from None
    return _attachment(opened, path.name)


@routes.delete("/api/files/<name>", ADMIN, UnknownFile)
def remove(path: FilePath) -> Done:
    """Delete a file permanently.

    Messages and responses that refer to it are sent without it.
    """
    require_reach(None)
    with write() as tx:
        remove_file(api().settings.files, path.name)
        forget_files(tx, [path.name])
    return Done()


def check_sendable(tx: Transaction, names: Sequence[str], roots: Sequence[Root]) -> tuple[str, ...]:
    """Return the real paths of uploaded files, or of files below these directories.

    A file that may not be sent is an error.
    """

    def require(name: str) -> bool:
        if not may_attach(tx, caller(), name):
            raise OutOfReach(f"the key {caller().name!r} does not reach the file {name}")
        return True

    paths = [resolve_allowed(name, roots, require) for name in resolve_uploads(names)]
    for each in paths:
        if isinstance(each, RefusedFile):
            raise UnknownFile(str(each))
    return tuple(str(each) for each in paths)


def may_attach(tx: Transaction, key: Key, name: str) -> bool:
    """Whether a key may attach a stored file: its own upload, or a file of its agents."""
    if key.agents is None:
        return True
    return is_upload_of(tx, name, key.id) or is_used_by(tx, name, key.agents)


def resolve_uploads(names: Sequence[str]) -> tuple[str, ...]:
    """Replace names of uploaded files with their paths; permissions are checked later."""
    return tuple(str(_uploaded(name) or name) for name in names)


def download(path: str, roots: Sequence[Root]) -> Response:
    """Send this file as an attachment; a file that may not be sent is reported as unknown."""
    file = open_allowed(path, roots)
    if isinstance(file, RefusedFile):
        raise UnknownFile(str(file))
    return _attachment(file, Path(path).name)


def _attachment(file: BinaryIO, name: str) -> Response:
    name = "".join(each if each.isprintable() else "_" for each in name)
    response = send_file(file, as_attachment=True, download_name=name, etag=False)
    response.content_length = os.fstat(file.fileno()).st_size
    response.headers["Content-Security-Policy"] = SANDBOX_POLICY
    response.headers["Cache-Control"] = "private, no-store"
    return response


@contextmanager
def _collect_uploads() -> Iterator[list[Upload]]:
    """Collect the uploads of a form; delete those that were not kept."""
    uploads: list[Upload] = []
    try:
        yield uploads
    finally:
        for each in uploads:
            each.drop()


def _parse_form(uploads: list[Upload]) -> FileStorage:
    """Read the form and write its file to the disk."""

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
        raise BadRequest(f"invalid form: {str(error)[:200]!a}") from None
    files = fields.getlist(FIELD)
    if len(files) != 1 or len(uploads) != 1:
        raise BadRequest(f"the form must have exactly one file, in the field `{FIELD}`")
    return files[0]


def _uploaded(name: str) -> Path | None:
    if "/" in name:
        return None
    path = api().settings.files / name
    try:
        return path if path.is_file() else None
    except OSError:
        return None
