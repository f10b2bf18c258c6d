"""What is committed wakes whoever waits for it, in this process and in others, with its topics."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import pytest

from bullpen.core.background import register_worker
from bullpen.core.events.append import append_event
from bullpen.core.events.system import ProcessorStart
from bullpen.core.message import Answer, NewMessage
from bullpen.core.outbox.write import add_response
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from bullpen.core.wake.listener import ALL_TOPICS, Listener
from tests.outbox.outgoing import asked
from tests.stores import Stores
from tests.wake.listening import (
    SOON,
    heard,
    line,
    listening,
    open_lane,
    python,
    running,
    send,
    tell,
)


class Undone(Exception):
    pass


def test_a_message_wakes_with_its_topics_and_no_others(store: Store) -> None:
    open_lane(store)
    with listening(store) as listener:
        send(store)
        assert listener.wait(SOON) == {"messages", "events"}


def test_a_response_wakes_the_client_of_its_channel(store: Store) -> None:
    with listening(store) as listener:
        with store.write() as tx:
            add_response(tx, asked("slack_1"), Answer(message="hi"))
        assert listener.wait(SOON) == {"responses:slack", "events"}


def test_a_transaction_without_news_wakes_nobody(store: Store) -> None:
    with listening(store) as listener:
        with store.write() as tx:
            register_worker(tx, "test")
        with store.read() as tx:
            tx.fetch("SELECT 1")
        tell_other(store)
        assert listener.wait(SOON) == {"other"}


def test_a_rolled_back_transaction_wakes_nobody(store: Store) -> None:
    with listening(store) as listener:
        with suppress(Undone), store.write() as tx:
            append_event(tx, ProcessorStart(worker="w"))
            raise Undone
        tell_other(store)
        assert listener.wait(SOON) == {"other"}


def tell_other(store: Store) -> None:
    """Ring for a topic of the test's own."""
    with store.write() as tx:
        tx.wake("other")


def test_a_hint_for_several_topics_is_one_wake_up(store: Store) -> None:
    with listening(store) as listener:
        with store.write() as tx:
            for topic in ("a", "b", "c", "a"):
                tx.wake(topic)
        assert listener.wait(SOON) == {"a", "b", "c"}
        assert listener.wait(0.05) <= ALL_TOPICS


def test_hints_that_come_before_the_wait_are_not_lost(store: Store) -> None:
    with listening(store) as listener:
        for topic in ("a", "b"):
            with store.write() as tx:
                tx.wake(topic)
        assert (listener.wait(SOON) | listener.wait(0.05)) - ALL_TOPICS == {"a", "b"}


def test_every_listener_is_woken(store: Store) -> None:
    with listening(store) as first, listening(store) as second, listening(store) as third:
        tell_other(store)
        assert all(heard(each, "other") for each in (first, second, third))


def test_a_commit_wakes_a_listener_in_another_thread(store: Store) -> None:
    open_lane(store)
    with listening(store) as listener:
        got: list[bool] = []
        thread = threading.Thread(target=lambda: got.append(heard(listener, "messages")))
        thread.start()
        send(store)
        thread.join(SOON + 5)
        assert got == [True]


def test_a_commit_in_another_process_wakes_this_one(store: Store) -> None:
    open_lane(store)
    writer = python(store.settings, "print('ready', flush=True)\nsys.stdin.readline()\nsend(store)")
    with listening(store) as listener, running(writer):
        assert line(writer) == "ready"
        tell(writer)
        assert heard(listener, "messages")
        with store.read() as tx:
            assert tx.fetch("SELECT count(*) FROM messages") == (1,)


def test_a_commit_here_wakes_another_process(store: Store) -> None:
    open_lane(store)
    code = (
        "with listening(store) as listener:\n"
        "    print('ready', flush=True)\n"
        "    print(heard(listener, 'messages'), flush=True)\n"
    )
    with running(python(store.settings, code)) as process:
        assert line(process) == "ready"
        send(store)
        assert line(process) == "True"


def test_a_newcomer_is_woken_although_the_writer_has_just_rung(store: Store) -> None:
    tell_other(store)
    with listening(store) as listener:
        deadline = time.monotonic() + SOON
        while "other" not in listener.wait(0.05):
            assert time.monotonic() < deadline
            tell_other(store)


def test_a_hint_never_fails_the_write_even_inside_a_read_of_the_same_thread(
    store: Store,
) -> None:
    open_lane(store)
    with listening(store) as listener:
        with store.read() as look:
            assert look.fetch("SELECT count(*) FROM messages") == (0,)
            send(store)
        assert heard(listener, "messages")


def joined(tx: Transaction) -> None:
    """What a caller adds to his own transaction."""
    enqueue(tx, NewMessage(agent="coder", message="hi"))


def test_a_callers_own_commit_wakes(store: Store) -> None:
    open_lane(store)
    with listening(store) as listener:
        with store.engine.begin() as connection, store.join(connection) as tx:
            joined(tx)
        assert heard(listener, "messages")


def test_a_callers_own_rollback_wakes_nobody_then_or_with_a_later_commit(store: Store) -> None:
    open_lane(store)
    with listening(store) as listener:
        with store.engine.connect() as connection:
            transaction = connection.begin()
            with store.join(connection) as tx:
                joined(tx)
            transaction.rollback()
            with connection.begin(), store.join(connection) as tx:
                tx.wake("other")
        assert (listener.wait(SOON) | listener.wait(0.1)) - ALL_TOPICS == {"other"}


def test_a_callers_commit_that_fails_wakes_nobody(store: Store) -> None:
    open_lane(store)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
        connection.exec_driver_sql(
            "CREATE TABLE children (id INTEGER PRIMARY KEY, parent INTEGER"
            " REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)"
        )
    with listening(store) as listener:
        with store.engine.connect() as connection:
            driver = connection.connection.driver_connection
            if store.dialect == "sqlite":
                assert driver is not None
                driver.execute("PRAGMA foreign_keys = ON")
            transaction = connection.begin()
            connection.exec_driver_sql("INSERT INTO children VALUES (1, 99)")
            with store.join(connection) as tx:
                joined(tx)
            with pytest.raises(Exception, match=r"(?i)foreign key"):
                transaction.commit()
            transaction.close()
        tell_other(store)
        assert (listener.wait(SOON) | listener.wait(0.1)) - ALL_TOPICS == {"other"}


def test_whoever_is_woken_by_a_callers_commit_finds_what_was_committed(
    stores: Stores, store: Store
) -> None:
    open_lane(store)
    missed: list[int] = []
    looked = threading.Barrier(2)

    def look(listener: Listener) -> None:
        for number in range(1, 41):
            if not heard(listener, "messages"):
                missed.append(-number)
            with store.read() as tx:
                if tx.fetch("SELECT count(*) FROM messages") != (number,):
                    missed.append(number)
            looked.wait(SOON)

    with listening(store) as listener:
        thread = threading.Thread(target=look, args=(listener,))
        thread.start()
        for _ in range(40):
            with store.engine.begin() as connection, store.join(connection) as tx:
                joined(tx)
            looked.wait(SOON)
        thread.join(SOON)
    assert missed == []
