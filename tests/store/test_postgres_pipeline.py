"""A connection in pipeline mode: it stays in step, whatever goes wrong in between."""

from __future__ import annotations

import pytest
from sqlalchemy import Integer, Text, bindparam, literal_column, select, type_coerce

from bullpen.core.errors import StoreUnavailable
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement

MIB = 1024 * 1024

ECHO: Statement[tuple[str]] = Statement(lambda: select(type_coerce(bindparam("text"), Text)))
DIVIDE: Statement[tuple[int]] = Statement(
    lambda: select(type_coerce(bindparam("a"), Integer) / type_coerce(bindparam("b"), Integer))
)
TYPES: Statement[tuple[object, ...]] = Statement(
    lambda: select(
        *(
            literal_column(each)
            for each in (
                *("1 = 1", "NULL", "CAST(2 AS bigint)", "CAST(2 AS smallint)"),
                *("CAST(0.25 AS double precision)", "'a''b'"),
            )
        )
    )
)


@pytest.fixture
def kind() -> str:
    """Only PostgreSQL has pipes."""
    return "postgresql"


pytestmark = pytest.mark.postgres


def test_more_than_fits_between_client_and_server_neither_stalls_nor_mixes(store: Store) -> None:
    texts = [f"{number}" * MIB for number in range(10)]
    with store.read() as tx:
        answers = [tx.one_deferred(ECHO, {"text": text}) for text in texts]
        assert [answer() for answer in answers] == [(text,) for text in texts]


def test_answers_may_be_asked_for_in_any_order(store: Store) -> None:
    with store.read() as tx:
        first, second = (
            tx.one_deferred(ECHO, {"text": "first"}),
            tx.one_deferred(ECHO, {"text": "second"}),
        )
        assert second() == ("second",)
        assert first() == ("first",)
        assert first() == ("first",)


def test_an_error_is_told_by_whoever_waits_next_and_the_connection_goes_on(store: Store) -> None:
    for _ in range(2):
        with pytest.raises(Exception, match="division by zero"):
            _divide_by_zero(store)
        with store.write() as tx:
            assert tx.one(DIVIDE, {"a": 6, "b": 3}) == (2,)
            assert tx.one(ECHO, {"text": "answered"}) == ("answered",)


def _divide_by_zero(store: Store) -> None:
    with store.write() as tx:
        tx.one_deferred(DIVIDE, {"a": 1, "b": 0})
        # It is prepared behind the error, so that the server never hears of it.
        tx.one(ECHO, {"text": "not answered"})


def test_an_error_that_nobody_waited_for_is_told_by_the_commit(store: Store) -> None:
    with pytest.raises(Exception, match="division by zero"), store.write() as tx:
        tx.write(DIVIDE, {"a": 1, "b": 0})


def test_values_come_back_as_what_they_are(store: Store) -> None:
    with store.read() as tx:
        assert tx.one(TYPES, {}) == (True, None, 2, 2, 0.25, "a'b")
        for text in ("", "ünïcödé 🙂", "$1 %s %% \\ '", "\n"):
            assert tx.one(ECHO, {"text": text}) == (text,)


def test_an_interrupted_transaction_leaves_nothing_and_is_not_used_again(store: Store) -> None:
    seen = []

    def interrupted() -> None:
        with store.write() as tx:
            seen.append(tx.fetch("SELECT pg_backend_pid()"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with store.write() as tx:
        assert tx.fetch("SELECT pg_backend_pid()") not in seen


def test_a_connection_that_was_cut_is_an_error_once(store: Store) -> None:
    with pytest.raises(StoreUnavailable), store.write() as tx:
        tx.fetch("SELECT pg_terminate_backend(pg_backend_pid())")
    with store.write() as tx:
        assert tx.fetch("SELECT 1") == (1,)
