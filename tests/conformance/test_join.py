"""Bullpen's verbs inside the caller's own SQLAlchemy transaction."""

from __future__ import annotations

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, insert, select
from sqlalchemy.orm import Session

from bullpen.core.errors import DuplicateMessage, UnknownAgent
from bullpen.core.message import NewMessage, Outcome
from bullpen.core.models import MESSAGES
from bullpen.core.queue.claim import claim
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.finish import finish
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    AGENT,
    ANSWERED,
    broken_off,
    lane,
    rows,
    send,
    status,
    statuses,
    take,
)

NEW = NewMessage(agent=AGENT, message="ship order 7", message_id="order-7")
ORDERS = Table("orders", MetaData(), Column("id", Integer, primary_key=True), Column("what", Text))


@pytest.fixture
def orders(store: Store) -> Store:
    """A store with a table of the caller's own beside ours."""
    ORDERS.create(store.engine)
    lane(store)
    return store


def _order(store: Store, connection: Connection) -> None:
    connection.execute(insert(ORDERS).values(id=7, what="socks"))
    with store.join(connection) as tx:
        enqueue(tx, NEW)


def _stored(store: Store) -> tuple[int, int]:
    """How many orders and how many messages there are, as another connection sees it."""
    with store.engine.begin() as connection:
        return len(connection.execute(select(ORDERS)).all()), len(rows(store, MESSAGES))


def test_the_message_is_committed_with_the_callers_row(orders: Store) -> None:
    with orders.engine.begin() as connection:
        _order(orders, connection)
    assert _stored(orders) == (1, 1)
    assert status(orders, "order-7") == "pending"
    assert take(orders).primary.message == "ship order 7"


def test_the_message_is_rolled_back_with_the_callers_row(orders: Store) -> None:
    with broken_off(orders.engine.begin()) as connection:
        _order(orders, connection)
    assert _stored(orders) == (0, 0)


def test_leaving_the_join_commits_nothing(orders: Store) -> None:
    with orders.engine.connect() as connection, connection.begin() as transaction:
        _order(orders, connection)
        transaction.rollback()
    assert _stored(orders) == (0, 0)


def test_an_error_in_the_join_leaves_the_callers_row_to_the_caller(orders: Store) -> None:
    with orders.engine.begin() as connection:
        connection.execute(insert(ORDERS).values(id=7, what="socks"))
        with pytest.raises(UnknownAgent), orders.join(connection) as tx:
            enqueue(tx, NewMessage(agent="ghost", message="x"))
    assert _stored(orders) == (1, 0)


def test_a_duplicate_in_the_join_can_be_caught_and_the_rest_committed(orders: Store) -> None:
    send(orders, message_id="order-7")
    with orders.engine.begin() as connection:
        connection.execute(insert(ORDERS).values(id=7, what="socks"))
        with pytest.raises(DuplicateMessage), orders.join(connection) as tx:
            enqueue(tx, NEW)
    assert _stored(orders) == (1, 1)


def test_a_savepoint_of_the_callers_takes_only_its_part_back(orders: Store) -> None:
    with orders.engine.begin() as connection:
        connection.execute(insert(ORDERS).values(id=1, what="kept"))
        savepoint = connection.begin_nested()
        _order(orders, connection)
        savepoint.rollback()
    assert _stored(orders) == (1, 0)


def test_a_transaction_that_the_join_begins_is_rolled_back_by_its_caller(orders: Store) -> None:
    with orders.engine.connect() as connection:
        with orders.join(connection) as tx:
            enqueue(tx, NEW)
        connection.rollback()
    assert _stored(orders) == (0, 0)


def test_a_transaction_that_the_join_begins_is_committed_by_its_caller(orders: Store) -> None:
    with orders.engine.connect() as connection:
        with orders.join(connection) as tx:
            enqueue(tx, NEW)
        connection.commit()
    assert _stored(orders) == (0, 1)


def test_a_session_can_be_joined(orders: Store) -> None:
    with Session(orders.engine) as session, session.begin():
        session.execute(insert(ORDERS).values(id=7, what="socks"))
        with orders.join(session.connection()) as tx:
            enqueue(tx, NEW)
    assert _stored(orders) == (1, 1)


def test_two_joins_in_one_transaction_are_one(orders: Store) -> None:
    with broken_off(orders.engine.begin()) as connection:
        for number in range(2):
            with orders.join(connection) as tx:
                enqueue(tx, NewMessage(agent=AGENT, message=str(number)))
    assert _stored(orders) == (0, 0)


@pytest.mark.parametrize("keep", [True, False])
def test_a_run_can_be_finished_with_rows_of_the_callers(orders: Store, keep: bool) -> None:
    sent = send(orders)
    found = take(orders)
    with orders.engine.connect() as connection, connection.begin() as transaction:
        connection.execute(insert(ORDERS).values(id=7, what="socks"))
        with orders.join(connection) as tx:
            finish(tx, found.token, ANSWERED)
        if keep:
            transaction.commit()
        else:
            transaction.rollback()
    assert status(orders, sent) == ("completed" if keep else "processing")
    assert _stored(orders) == (int(keep), 1)


def test_a_claim_and_a_finish_may_share_the_callers_transaction(orders: Store) -> None:
    handoff = Outcome(handoffs=(NewMessage(agent=AGENT, message="next"),))
    send(orders)
    with orders.engine.begin() as connection, orders.join(connection) as tx:
        found = claim(tx, "worker-1")
        assert found is not None
        finish(tx, found.token, handoff)
    assert statuses(orders) == {"completed": 1, "pending": 1}
