"""Files: what people send along, and what goes out with answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from flask import Response, request
from flask_openapi3.models.media_type import MediaType
from flask_openapi3.models.request_body import RequestBody
from flask_openapi3.models.schema import Schema
from pydantic import BaseModel, Field, RootModel
from werkzeug.datastructures import FileStorage
from werkzeug.formparser import FormDataParser

from bullpen.api.context import api, reach, write
from bullpen.api.files import FILE, download
from bullpen.api.models import Done, Page, listed
from bullpen.api.route import blueprint, route
from bullpen.core.access.key import Scope
from bullpen.core.errors import BadRequest, UnknownFile
from bullpen.core.files.browse import StoredFile, file_path, list_files, remove_file
from bullpen.core.files.incoming import SavedUpload, Upload

ROUTES = blueprint("files", "What people send along, and what goes out with answers.")

FIELD = "file"
MOST_PARTS = 8
MOST_TEXT = 64 << 10
"""So many bytes of what else the form has are read."""


class UploadedAnswer(Done):
    """The file is stored."""

    name: str = Field(description="what it is called from now on, in `files` of a message")
    path: str = Field(description="where it lies on the machine of the API")
    size: int
    sha256: str

    @classmethod
    def of(cls, kept: SavedUpload) -> UploadedAnswer:
        """The file, as it is told."""
        return cls(name=kept.name, path=str(kept.path), size=kept.size, sha256=kept.sha256)


class FileAnswer(BaseModel):
    """A file."""

    id: int = Field(description="when it was stored, in microseconds: the list's cursor")
    name: str
    size: int
    created_at: int

    @classmethod
    def of(cls, file: StoredFile) -> FileAnswer:
        """The file, as it is shown."""
        return cls.model_validate(asdict(file))


class FileList(RootModel[list[FileAnswer]]):
    """Files."""


class FilePath(BaseModel):
    """Which file."""

    name: str = Field(max_length=1000, description="the file's name")


@route(ROUTES, "POST", "/api/files", scope=Scope.PUBLISH, answer=UploadedAnswer)
def upload() -> UploadedAnswer:
    """Store a file, to be named in `files` of a message or of an answer.

    It gets a name of its own, so that none takes the place of another. The setting `upload_bytes`
    is the most that the request may have.
    """
    with _incoming() as begun:
        given = _parse(begun)
        return UploadedAnswer.of(begun[0].keep(api().store.ids, given.filename or ""))


@route(ROUTES, "GET", "/api/files", scope=Scope.READ, answer=FileList)
def files(query: Page) -> Response:
    """List the files, the newest first; with `since_id` those after it, the oldest first.

    For keys that reach all agents.
    """
    reach(None)
    found = list_files(api().settings.files, query.since_id, query.limit)
    rows = FileList([FileAnswer.of(each) for each in found])
    return listed(rows, [each.id for each in found], query)


@route(ROUTES, "GET", "/api/files/<name>", scope=Scope.READ, answer=FILE, errors=(UnknownFile,))
def file(path: FilePath) -> Response:
    """Download a file. For keys that reach all agents."""
    reach(None)
    directory = api().settings.files
    return download(file_path(directory, path.name).name, (directory,))


@route(
    ROUTES,
    "DELETE",
    "/api/files/<name>",
    scope=Scope.ADMIN,
    answer=Done,
    errors=(UnknownFile,),
    audited=True,
)
def remove(path: FilePath) -> Done:
    """Delete a file for good; what names it goes out without it."""
    reach(None)
    with write():
        remove_file(api().settings.files, path.name)
    return Done()


@contextmanager
def _incoming() -> Iterator[list[Upload]]:
    """The files of a form; what was not kept of them is forgotten."""
    begun: list[Upload] = []
    try:
        yield begun
    finally:
        for each in begun:
            each.drop()


def _parse(begun: list[Upload]) -> FileStorage:
    """Read the form, its file straight to the disk."""

    def begin(*_: object, **__: object) -> Upload:
        begun.append(Upload(api().settings.files))
        return begun[-1]

    parser = FormDataParser(
        stream_factory=begin,  # type: ignore[arg-type] # it takes what the parser writes
        max_form_memory_size=MOST_TEXT,
        max_form_parts=MOST_PARTS,
        silent=False,
    )
    try:
        _, _, found = parser.parse(
            request.stream, request.mimetype, request.content_length, request.mimetype_params
        )
    except ValueError as error:
        raise BadRequest(f"the form cannot be read: {str(error)[:200]!a}") from None
    given = found.getlist(FIELD)
    if len(given) != 1 or len(begun) != 1:
        raise BadRequest(f"a form with one file is expected, in a field called `{FIELD}`")
    return given[0]


ROUTES.paths["/api/files"].post.requestBody = RequestBody(
    required=True,
    content={
        "multipart/form-data": MediaType(
            schema=Schema(
                type="object",
                required=[FIELD],
                properties={FIELD: Schema(type="string", format="binary")},
            )
        )
    },
)
