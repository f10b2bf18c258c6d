"""Types that many requests and answers share."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from flask import Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel
from sqlalchemy import Table

from bullpen.api.context import api
from bullpen.core.store.listing import MAX_ROW_ID
from bullpen.core.store.settled import committed_up_to

MOST = 500
"""So many rows are in one answer at the most."""

BIG = (1 << 53) - 1
"""The largest number that every reader of JSON keeps as it is."""

Number = Annotated[int, Field(ge=0, le=BIG)]
Cursor = Annotated[int, Field(ge=0, le=BIG)]


class Input(BaseModel):
    """What comes in: what is not known is not taken for something else, and nothing is guessed."""

    model_config = ConfigDict(extra="forbid")


class Done(BaseModel):
    """It was done."""

    ok: Literal[True] = True


class Count(Done):
    """It was done to so many."""

    count: int


class Page(BaseModel):
    """Which part of a list: the newest, or what comes after a number."""

    limit: int = Field(100, ge=1, le=MOST, description="how many at the most")
    since_id: Cursor | None = Field(
        None, description="only what has a higher number, the oldest first"
    )


def upto(rows: Table, since: int | None) -> int:
    """How far a list may go on: a number that is to come is not passed by."""
    return MAX_ROW_ID if since is None else committed_up_to(api().store, rows)


def listed(rows: RootModel[Any], numbers: list[int], page: Page) -> Response:
    """A list as the reference's clients read it, with its cursor in a header."""
    response = Response(rows.model_dump_json(by_alias=True), mimetype="application/json")
    if numbers and (page.since_id is not None or len(numbers) == page.limit):
        response.headers["X-Next-Cursor"] = str(max(numbers))
    return response


def paths(text: str | None) -> list[str]:
    """The files of a row."""
    return [] if not text else [str(each) for each in json.loads(text)]


def parsed(text: str | None) -> JsonValue:
    """A column of JSON, as JSON again; what is none is shown as its text."""
    if text is None:
        return None
    try:
        found: JsonValue = json.loads(text)
    except ValueError:
        return text
    return found
