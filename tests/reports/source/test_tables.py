"""The fact tables have the columns of the store, with its types."""

from __future__ import annotations

from sqlalchemy import Boolean, Double, Text

from bullpen.core.models import whole_schema
from bullpen.reports.facts.tables import FACT_TABLES, FactTable
from bullpen.reports.schema import Column, Type

NOT_FACTS = {
    "messages": {
        *("claim_token", "lease_expires_at", "batch_key", "sort_key", "ready"),
        *("key_id", "key_bytes"),
    },
    "responses": {
        *("part_receipts", "sending_since", "sending_part", "claim_token", "lease_expires_at"),
        *("lapses", "recover_at", "recoveries", "tell_at"),
    },
}
"""Columns of the store that only the processes use."""


def test_every_column_of_the_store_is_a_fact_with_the_same_type() -> None:
    wrong = []
    for table in FACT_TABLES.values():
        stored = whole_schema().tables[table.stored_in[0]].c
        facts = {each.name: each for each in _stored_columns(table)}
        for column in stored:
            if column.name in NOT_FACTS.get(table.name, ()):
                continue
            if column.name not in facts:
                wrong.append(f"{table.name}.{column.name} is no fact")
            elif facts[column.name].type is not _type_of(column.type):
                wrong.append(f"{table.name}.{column.name} is not {facts[column.name].type}")
    assert not wrong


def test_no_column_gives_away_the_right_to_finish_a_claim() -> None:
    names = {each.name for table in FACT_TABLES.values() for each in table.columns}
    assert not {name for name in names if "token" in name} - {"input_tokens", "output_tokens"}


def _stored_columns(table: FactTable) -> list[Column]:
    return [
        each for each in table.columns if each.name not in table.fields and each.name != "archived"
    ]


def _type_of(stored: object) -> Type:
    if isinstance(stored, Text):
        return Type.TEXT
    if isinstance(stored, Double):
        return Type.NUMBER
    return Type.BOOLEAN if isinstance(stored, Boolean) else Type.INTEGER
