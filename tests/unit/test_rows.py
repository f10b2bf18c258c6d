"""Rows: dataclasses made of a statement's columns."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from enum import StrEnum

import pytest

from bullpen.core.inspect.messages import MessageRecord
from bullpen.core.message import Message
from bullpen.core.models import MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.store.statement import columns, row_factory


class Colour(StrEnum):
    """An enum that a database keeps as text."""

    RED = "red"


@dataclass(frozen=True, slots=True)
class Plain:
    """A row of what drivers return as it is."""

    id: int
    message_id: str | None


@dataclass(frozen=True, slots=True)
class Converted:
    """A row of what drivers do not return as it is."""

    id: int
    ready: bool
    colour: Colour | None
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A row whose fields are given by name, with one that no column has."""

    id: int
    message_id: str = ""
    ready: bool = False
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """A row with a check of its own."""

    id: int

    def __post_init__(self) -> None:
        assert self.id > 0


def test_a_row_is_an_ordinary_object_of_its_class() -> None:
    """However its factory makes it."""
    for kind, values in ((Plain, (1, None)), (Message, tuple(range(25))), (MessageRecord, ())):
        made = row_factory(kind)(*(values or range(len(fields(kind)))))
        by_name = {each.name: getattr(made, each.name) for each in fields(made)}
        assert type(made) is kind
        assert (made, hash(made), repr(made)) == (
            kind(**by_name),
            hash(kind(**by_name)),
            repr(kind(**by_name)),
        )
        assert pickle.loads(pickle.dumps(made)) == made == copy.deepcopy(made)
        assert replace(made, id=-1).id == -1
        with pytest.raises(FrozenInstanceError):
            setattr(made, "id", 2)  # noqa: B010
        with pytest.raises(AttributeError):
            _ = made.__dict__


def test_the_check_of_a_class_is_made() -> None:
    with pytest.raises(AssertionError):
        row_factory(Checked)(0)


def test_enums_and_booleans_and_floats_are_made_by_annotation() -> None:
    make = row_factory(Converted)
    assert make(1, 0, "red", 2) == Converted(1, ready=False, colour=Colour.RED, cost=2.0)
    row = make(1, 1, None)
    assert (row.ready, row.colour) == (True, None)
    assert isinstance(make(1, 1, None, 3).cost, float)


def test_keyword_fields_are_given_by_name() -> None:
    assert row_factory(Named)(1, "m", 1) == Named(id=1, message_id="m", ready=True)


def test_a_function_is_a_factory() -> None:
    assert row_factory(max)(1, 3, 2) == 3


def test_columns_are_found_by_field_name_and_end_with_the_table() -> None:
    assert [each.name for each in columns(Named, MESSAGES)] == ["id", "message_id", "ready"]


def test_a_field_in_the_middle_without_a_column_is_refused() -> None:
    @dataclass
    class Hole:
        id: int
        nowhere: int
        message_id: str

    with pytest.raises(TypeError, match="nowhere"):
        columns(Hole, MESSAGES)


def test_a_message_column_is_spelled_once() -> None:
    message, record = ([each.name for each in fields(kind)] for kind in (Message, MessageRecord))
    assert record[: len(message)] == message
    for table in (MESSAGES, MESSAGES_ARCHIVE):
        assert {each.name for each in columns(MessageRecord, table)} == set(record)
