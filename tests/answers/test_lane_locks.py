"""Each lane is locked once for what a person writes, in the order of names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bullpen.core.intake import post_in_room, submit
from bullpen.core.message import NewMessage
from bullpen.core.queue.enqueue import enqueue_many
from bullpen.core.queue.lanes import LOCK_LANE
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from tests.answers.talk import team
from tests.conformance.verbs import hire


@pytest.fixture
def store(store: Store) -> Store:
    """A store with a team, and an agent beside it."""
    team(store, "coder", "reviewer")
    hire(store, "writer")
    return store


def record_locks(tx: Transaction, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The lanes that are locked from now on, one entry for each lock statement."""
    locked: list[object] = []
    one, one_each, one_deferred = tx.one, tx.one_each, tx.one_deferred

    def note(statement: Statement[object], values: dict[str, object]) -> None:
        if statement is LOCK_LANE:
            locked.append(values["agent"])

    def noting_one(statement: Statement[object], values: dict[str, object]) -> object:
        note(statement, values)
        return one(statement, values)

    def noting_deferred(statement: Statement[object], values: dict[str, object]) -> object:
        note(statement, values)
        return one_deferred(statement, values)

    def noting_each(statement: Statement[object], many: Sequence[dict[str, object]]) -> object:
        before = len(locked)
        for values in many:
            note(statement, values)
        expected = locked[before:]
        rows = one_each(statement, many)
        # On SQLite it calls `one` for each: those are the same statements.
        locked[before:] = expected
        return rows

    monkeypatch.setattr(tx, "one", noting_one)
    monkeypatch.setattr(tx, "one_deferred", noting_deferred)
    monkeypatch.setattr(tx, "one_each", noting_each)
    return locked


@pytest.mark.parametrize("receipt", [None, "Ev1"])
@pytest.mark.parametrize(
    ("text", "lanes"),
    [
        ("@coder one", ["coder"]),
        ("[@writer: one] [@coder: two] [@writer: three]", ["coder", "writer"]),
        ("[@writer: one] [#dev: two] [@dev: three]", ["coder", "reviewer", "writer"]),
    ],
)
def test_a_message_locks_each_lane_once_in_the_order_of_names(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    lanes: list[str],
    receipt: str | None,
) -> None:
    new = NewMessage(
        agent="coder", message=text, channel="slack", event_ids=(receipt,) if receipt else ()
    )
    with store.write() as tx:
        locked = record_locks(tx, monkeypatch)
        submit(tx, new)
    assert locked == lanes


def test_a_redelivery_locks_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    new = NewMessage(agent="coder", message="@coder one", channel="slack", event_ids=("Ev1",))
    with store.write() as tx:
        submit(tx, new)
    with store.write() as tx:
        locked = record_locks(tx, monkeypatch)
        submit(tx, new)
        enqueue_many(tx, [new])
    assert locked == []


def test_a_post_locks_each_members_lane_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.write() as tx:
        locked = record_locks(tx, monkeypatch)
        post_in_room(tx, "dev", "hello", "Ada")
    assert locked == ["coder", "reviewer"]


def test_a_library_users_messages_lock_each_lane_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    news = [NewMessage(agent=agent, message="hi") for agent in ("writer", "coder", "writer")]
    with store.write() as tx:
        locked = record_locks(tx, monkeypatch)
        enqueue_many(tx, news)
    assert locked == ["coder", "writer"]
