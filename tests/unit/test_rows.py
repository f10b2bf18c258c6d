"""Rows: dataclasses made of a statement's columns."""

from __future__ import annotations

from dataclasses import dataclass, fields
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


def test_a_class_without_conversions_is_its_own_factory() -> None:
    assert row_factory(Plain) is Plain
    assert row_factory(Message) is Message


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
