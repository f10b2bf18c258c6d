"""What the views' models are made of: request bodies, answers, lists and their paging."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar, Generic, Literal, Protocol, Self, TypeVar

from pydantic import (
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    RootModel,
)
from pydantic.alias_generators import to_camel
from sqlalchemy import Table

from bullpen.api.context import api
from bullpen.core.models.base import decode_texts
from bullpen.core.store.committed import committed_up_to
from bullpen.core.store.paging import MAX_ROW_ID
from bullpen.core.store.transaction import Cut
from bullpen.core.strict_json import read_json_column

MAX_PAGE_ROWS = 500
"""The most rows in one answer."""

MAX_JSON_INT = (1 << 53) - 1
"""The largest integer that every JSON reader keeps exactly."""


def parse_json(column: str | None) -> JsonValue:
    """A column of JSON as its value."""
    return None if column is None else read_json_column(column)


Number = Annotated[int, Field(ge=0, le=MAX_JSON_INT)]
Cursor = Annotated[int, Field(ge=0, le=MAX_JSON_INT)]
ShortText = Annotated[str, Field(max_length=200)]
LongText = Annotated[str, Field(max_length=4096)]
FilesColumn = Annotated[list[str], BeforeValidator(decode_texts)]
JsonColumn = Annotated[JsonValue, BeforeValidator(parse_json)]


class StrictBody(BaseModel):
    """What comes in: what is not known is not taken for something else, and nothing is guessed."""

    model_config = ConfigDict(extra="forbid")


class CamelBody(StrictBody):
    """A body whose names are camelCase in JSON, as the reference's clients send them."""

    model_config = ConfigDict(alias_generator=to_camel)


class LenientBody(BaseModel):
    """What is to be changed."""

    # The reference's clients send more fields than are read here.
    model_config = ConfigDict(extra="ignore")


Change = TypeVar("Change", bound=Mapping[str, object])


def only_changes(change: Change, before: object) -> Change:
    """The fields of a change that differ from the attributes of what is there."""
    return {  # type: ignore[return-value] # a TypedDict whose fields are all optional is a dict
        name: value for name, value in change.items() if getattr(before, name) != value
    }


class Answer(BaseModel):
    """What a view answers, read from the attributes of a row."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def from_row(cls, row: object, **values: object) -> Self:
        """The answer for a row; `values` are fields that the row lacks or has in another form."""
        return cls.model_validate(_Overlay(row, values) if values else row)


class CamelAnswer(Answer):
    """An answer whose names are camelCase in JSON, as the reference's clients read them."""

    model_config = ConfigDict(alias_generator=AliasGenerator(serialization_alias=to_camel))


class _Overlay:
    """A row with some attributes replaced."""

    def __init__(self, row: object, values: dict[str, object]) -> None:
        self._row = row
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> object:
        return getattr(self._row, name)


class Done(Answer):
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


class Numbered(Protocol):
    """A row that a page can go on after."""

    @property
    def id(self) -> int: ...


Item = TypeVar("Item")


def next_cursor(rows: Sequence[Numbered], page: Page) -> int | None:
    """What to give as `since_id` for the next page; None if these are all."""
    full = len(rows) == page.limit or isinstance(rows, Cut)
    if rows and (page.since_id is not None or full):
        return max(each.id for each in rows)
    return None


class Rows(RootModel[list[Item]], Generic[Item]):
    """A list of answers; of a page that may not be the last, with the cursor of the next one."""

    model_config = ConfigDict(from_attributes=True)

    large: ClassVar[bool] = True
    """Few of these are made at once."""

    _next_cursor: int | None = None

    @classmethod
    def of(cls, rows: Iterable[object]) -> Self:
        """All of these rows, as answers."""
        return cls.model_validate(list(rows))

    @classmethod
    def page(cls, rows: Sequence[Numbered], page: Page) -> Self:
        """The rows of one page, as answers."""
        answer = cls.of(rows)
        answer._next_cursor = next_cursor(rows, page)
        return answer

    @property
    def next_cursor(self) -> int | None:
        """What to give as `since_id` for the next page."""
        return self._next_cursor


def page_end(table: Table, page: Page) -> int:
    """The last id that a page may show: no row with a lower one is still to be committed."""
    return MAX_ROW_ID if page.since_id is None else committed_up_to(api().store, table)
