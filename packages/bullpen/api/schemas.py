"""Base classes of the API's models: request bodies, answers, lists and their pages."""

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
"""The maximum number of rows in one response."""

MAX_JSON_INT = (1 << 53) - 1
"""The largest integer that every JSON parser keeps exactly."""


def parse_json(column: str | None) -> JsonValue:
    """Parse a column of JSON."""
    return None if column is None else read_json_column(column)


Number = Annotated[int, Field(ge=0, le=MAX_JSON_INT)]
Cursor = Annotated[int, Field(ge=0, le=MAX_JSON_INT)]
ShortText = Annotated[str, Field(max_length=200)]
LongText = Annotated[str, Field(max_length=4096)]
FilesColumn = Annotated[list[str], BeforeValidator(decode_texts)]
JsonColumn = Annotated[JsonValue, BeforeValidator(parse_json)]


class StrictBody(BaseModel):
    """A request body that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


class CamelBody(StrictBody):
    """A body with camelCase names in JSON, as TinyAGI's clients send them."""

    model_config = ConfigDict(alias_generator=to_camel)


class LenientBody(BaseModel):
    """A request body that ignores unknown fields."""

    # TinyAGI's clients send more fields than are read here.
    model_config = ConfigDict(extra="ignore")


Change = TypeVar("Change", bound=Mapping[str, object])


def only_changes(change: Change, before: object) -> Change:
    """Return the fields of a change that differ from the present object."""
    return {  # type: ignore[return-value] # a TypedDict whose fields are all optional is a dict
        name: value for name, value in change.items() if getattr(before, name) != value
    }


class Answer(BaseModel):
    """An answer, read from the attributes of a row."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def from_row(cls, row: object, **values: object) -> Self:
        """Return the answer for a row; `values` replace or add fields."""
        return cls.model_validate(_Overlay(row, values) if values else row)


class CamelAnswer(Answer):
    """An answer with camelCase names in JSON, as TinyAGI's clients read them."""

    model_config = ConfigDict(alias_generator=AliasGenerator(serialization_alias=to_camel))


class _Overlay:
    """A row with some attributes replaced."""

    def __init__(self, row: object, values: dict[str, object]) -> None:
        self._row = row
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> object:
        return getattr(self._row, name)


class Done(Answer):
    """Success."""

    ok: Literal[True] = True


class Count(Done):
    """Success, with the number of changed objects."""

    count: int


class Page(BaseModel):
    """Selects a page of a list: the newest rows, or the rows after a number."""

    limit: int = Field(100, ge=1, le=MAX_PAGE_ROWS, description="Maximum number of rows.")
    since_id: Cursor | None = Field(
        None, description="Only rows with a higher number, oldest first."
    )


class Numbered(Protocol):
    """A row with a number, after which the next page begins."""

    @property
    def id(self) -> int: ...


Item = TypeVar("Item")


def next_cursor(rows: Sequence[Numbered], page: Page) -> int | None:
    """Return the `since_id` of the next page; None if there is none."""
    full = len(rows) == page.limit or isinstance(rows, Cut)
    if rows and (page.since_id is not None or full):
        return max(each.id for each in rows)
    return None


class Rows(RootModel[list[Item]], Generic[Item]):
    """A list of answers; unless it is the last page, with the cursor of the next one."""

    model_config = ConfigDict(from_attributes=True)

    large: ClassVar[bool] = True
    """Whether only a few of these are created at once, because of their size."""

    _next_cursor: int | None = None

    @classmethod
    def of(cls, rows: Iterable[object]) -> Self:
        """Return all of these rows as answers."""
        return cls.model_validate(list(rows))

    @classmethod
    def page(cls, rows: Sequence[Numbered], page: Page) -> Self:
        """Return the rows of one page as answers."""
        answer = cls.of(rows)
        answer._next_cursor = next_cursor(rows, page)
        return answer

    @property
    def next_cursor(self) -> int | None:
        """The `since_id` of the next page."""
        return self._next_cursor


def page_end(table: Table, page: Page) -> int:
    """Return the last id of a page: every row with a lower id is committed."""
    return MAX_ROW_ID if page.since_id is None else committed_up_to(api().store, table)
