"""Statements: one expression, two dialects, the same values."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sqlite3

import pytest
from sqlalchemy import Select, bindparam, select

from bullpen import core
from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.store.statement import DIALECTS, Statement


def _all() -> dict[str, Statement[object]]:
    """Every statement of the core, by the name of its module and its own."""
    found: dict[str, Statement[object]] = {}
    for module in pkgutil.walk_packages(core.__path__, "bullpen.core."):
        for name, value in vars(importlib.import_module(module.name)).items():
            values = value.values() if isinstance(value, dict) else [value]
            for number, each in enumerate(values):
                if isinstance(each, Statement):
                    found[f"{module.name}.{name}.{number}"] = each
    return found


ALL = _all()


def _binds(text: str, dialect: str) -> set[str]:
    if dialect == "sqlite":
        return set(re.findall(r"(?<!:):(\w+)", text))
    return set(re.findall(r"%\((\w+)\)s", text))


def test_the_statements_were_found() -> None:
    assert len(ALL) > 30


def test_both_dialects_ask_for_the_same_values(subtests: pytest.Subtests) -> None:
    for name in ALL:
        with subtests.test(name=name):
            sqlite, postgres = (_binds(ALL[name].text[each], each) for each in DIALECTS)
            assert sqlite == postgres


def test_no_value_is_left_that_nobody_gives(subtests: pytest.Subtests) -> None:
    """SQLAlchemy names a value that nobody named `param_1`, or by its column and a number."""
    for name in ALL:
        for dialect in DIALECTS:
            with subtests.test(name=name, dialect=dialect):
                made_up = [
                    each for each in _binds(ALL[name].text[dialect], dialect) if each[-1].isdigit()
                ]
                assert made_up == []


def test_a_statement_is_built_and_compiled_once_when_its_text_is_asked_for() -> None:
    built = []

    def element() -> Select[int]:
        built.append(1)
        return select(MESSAGES.c.id)

    statement: Statement[tuple[int]] = Statement(element)
    assert built == []
    assert statement.text["sqlite"] is statement.text["sqlite"]
    assert built == [1]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_constant_stands_in_the_text(dialect: str) -> None:
    statement: Statement[tuple[int]] = Statement(
        lambda: (
            select(MESSAGES.c.id)
            .where(MESSAGES.c.status == const("it's"), MESSAGES.c.agent == bindparam("agent"))
            .limit(7)
        )
    )
    text = statement.text[dialect]
    assert "'it''s'" in text
    assert "LIMIT 7" in text
    assert _binds(text, dialect) == {"agent"}


def test_positional_parameters_take_the_values_of_the_names(subtests: pytest.Subtests) -> None:
    """The names in the order of the question marks, repeated as often as they occur."""
    for name in ALL:
        with subtests.test(name=name):
            text = ALL[name].text["sqlite"]
            sql, values_of = ALL[name].positional
            names = re.findall(r"(?<!:):(\w+)", text)
            assert values_of({each: each for each in names}) == tuple(names)
            assert re.sub(r"\?", ":X", sql) == re.sub(r"(?<!:):\w+", ":X", text)


def test_text_that_looks_like_a_parameter_is_none() -> None:
    statement: Statement[tuple[str]] = Statement(
        lambda: select(const("it's :agent?"), bindparam("agent"), bindparam("agent"))
    )
    sql, values_of = statement.positional
    row = sqlite3.connect(":memory:").execute(sql, values_of({"agent": "coder", "more": 1}))
    assert row.fetchone() == ("it's :agent?", "coder", "coder")
