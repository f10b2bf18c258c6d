"""A moment is found in a growing table by a few looks, however large that is."""

from __future__ import annotations

import pytest
from sqlalchemy import insert

from bullpen.core.clock import MINUTE
from bullpen.core.models import EVENTS
from bullpen.core.store.base import Store
from bullpen.core.store.paging import first_id_since

COUNT = 3000


@pytest.fixture
def numbers(store: Store) -> list[int]:
    """The numbers of events of which one happened each minute, every seventh being gone."""
    rows = [
        {"id": number, "type": "message_enqueued", "created_at": number * MINUTE}
        for number in range(11, COUNT)
        if number % 7
    ]
    with store.engine.begin() as connection:
        connection.execute(insert(EVENTS), rows)
    return [int(str(row["id"])) for row in rows]


@pytest.mark.parametrize("minute", [0, 1, 11, 12, 500, 1499, COUNT - 1, COUNT, COUNT + 50])
def test_nothing_since_then_is_left_out_and_little_else_is_in_it(
    store: Store, numbers: list[int], minute: int
) -> None:
    with store.read() as tx:
        found = first_id_since(tx, EVENTS, minute * MINUTE)
    wanted = [number for number in numbers if number >= minute]
    assert all(number > found for number in wanted)
    assert sum(number > found for number in numbers) <= len(wanted) + 2


def test_in_an_empty_table_it_is_the_beginning(store: Store) -> None:
    with store.read() as tx:
        assert first_id_since(tx, EVENTS, 5) == 0
