"""What the views' models are made of: request bodies, answers, lists and their paging."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from flask import Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel
from sqlalchemy import Table

from bullpen.api.context import api
from bullpen.core.store.paging import MAX_ROW_ID, committed_up_to

MAX_PAGE_ROWS = 500
"""The most rows in one answer."""

MAX_JSON_INT = (1 << 53) - 1
"""The largest integer that every JSON reader keeps exactly."""

Number = Annotated[int, Field(ge=0, le=MAX_JSON_INT)]
Cursor = Annotated[int, Field(ge=0, le=MAX_JSON_INT)]
ShortText = Annotated[str, Field(max_length=200)]
LongText = Annotated[str, Field(max_length=4096)]


class StrictBody(BaseModel):
    """What comes in: what is not known is not taken for something else, and nothing is guessed."""

    model_config = ConfigDict(extra="forbid")


class LenientBody(BaseModel):
    """What is to be changed."""

    # The reference's clients send more fields than are read here.
    model_config = ConfigDict(extra="ignore")


class Done(BaseModel):
    """It was done."""

    ok: Literal[True] = True


class Count(Done):
    """It was done to so many."""

    count: int


class Page(BaseModel):
    """Which part of a list: the newest, or what comes after a number."""

    limit: int = Field(100, ge=1, le=MAX_PAGE_ROWS, description="how many at the most")
    since_id: Cursor | None = Field(
        None, description="only what has a higher number, the oldest first"
    )


def page_end(rows: Table, since: int | None) -> int:
    """How far a list may go on: a number that is to come is not passed by."""
    return MAX_ROW_ID if since is None else committed_up_to(api().store, rows)


def list_response(rows: RootModel[Any], numbers: list[int], page: Page) -> Response:
    """A list as the reference's clients read it, with its cursor in a header."""
    response = Response(rows.model_dump_json(by_alias=True), mimetype="application/json")
    if numbers and (page.since_id is not None or len(numbers) == page.limit):
        response.headers["X-Next-Cursor"] = str(max(numbers))
    return response


def parse_files(text: str | None) -> list[str]:
    """The files of a row."""
    return [] if not text else [str(each) for each in json.loads(text)]


def parse_json(text: str | None) -> JsonValue:
    """A column of JSON, as JSON again; what is none is shown as its text."""
    if text is None:
        return None
    try:
        found: JsonValue = json.loads(text)
    except ValueError:
        return text
    return found
