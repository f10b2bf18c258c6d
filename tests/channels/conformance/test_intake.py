"""What people write is stored once, in order, before the platform gets its acknowledgement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from bullpen.channels.incoming import decide
from bullpen.core.intake import submit
from bullpen.core.message import Accepted, NewMessage
from bullpen.core.models import EVENTS, RECEIPTS, SENDERS
from bullpen.core.routing.address import AddressBook
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.channels.conformance.conftest import Account
from tests.conformance.verbs import rows
from tests.processor.working import eventually

BURST = 200


def test_a_message_is_stored_with_its_author_place_and_time(served: Account) -> None:
    id_ = served.say("hello there")
    served.stored("hello there")
    (message,) = served.messages()
    assert message["agent"] == "coder"
    assert message["sender_id"] == served.person()
    assert message["reply_to"].split("\x1f")[0] == served.direct()
    assert abs(message["written_at"] - message["created_at"]) < 60_000
    eventually(lambda: served.platform.is_acked(id_), "the platform got its acknowledgement")


def test_a_message_that_comes_again_by_every_way_is_one_message(served: Account) -> None:
    id_ = served.say("only once")
    served.stored("only once")
    served.platform.redeliver(id_)
    served.say("and another")
    served.stored("only once", "and another")


def test_a_message_that_comes_again_after_a_restart_is_one_message(served: Account) -> None:
    id_ = served.say("only once")
    served.stored("only once")
    served.stop()
    served.start()
    served.up()
    served.platform.redeliver(id_)
    served.say("and another")
    served.stored("only once", "and another")


def test_a_burst_keeps_its_order_and_is_acknowledged(served: Account) -> None:
    texts = [f"message {each}" for each in range(BURST)]
    ids = [served.say(each) for each in texts]
    served.stored(*texts)
    eventually(lambda: all(map(served.platform.is_acked, ids)), "all are acknowledged")


def test_an_answer_goes_back_to_where_the_question_came_from(served: Account) -> None:
    served.say("what is it?")
    served.stored("what is it?")
    served.answer("It is *done*.")
    eventually(lambda: len(served.posts()) == 1, "the answer is there")
    assert "done" in served.posts()[0]


def test_an_unknown_recipient_is_answered_with_the_names_that_exist(served: Account) -> None:
    served.say("@codre hello")
    eventually(lambda: any("coder" in each for each in served.posts()), "the names that exist")
    assert not served.messages()


def test_a_command_is_answered_without_an_agent(served: Account) -> None:
    served.say("/agents")
    eventually(lambda: any("@coder" in each for each in served.posts()), "the list of agents")
    assert not served.messages()


def test_what_one_payload_breaks_does_not_stop_the_next(
    served: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(
        tx: Transaction, new: NewMessage, *, is_fresh: bool = False, book: AddressBook | None = None
    ) -> tuple[Accepted, ...]:
        if new.message == "poison":
            raise ZeroDivisionError
        return submit(tx, new, is_fresh=is_fresh, book=book)

    monkeypatch.setattr(decide, "submit", wrong)
    served.say("before")
    served.say("poison")
    served.say("after")
    served.stored("before", "after")


def test_messages_wait_while_the_database_is_busy_and_none_is_lost(served: Account) -> None:
    with busy(served.store):
        ids = [served.say(f"waits {each}") for each in range(3)]
        assert not served.kind.acknowledges or not any(map(served.platform.is_acked, ids))
    served.stored(*(f"waits {each}" for each in range(3)))


@contextmanager
def busy(store: Store) -> Iterator[None]:
    """Another program has the database locked."""
    if store.dialect == "sqlite":
        with store.write():
            yield
        return
    url = store.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as server:
        server.execute("LOCK TABLE messages")
        yield


def test_an_edit_of_a_pending_message_changes_it(served: Account) -> None:
    if not served.kind.edits:
        pytest.skip("the platform has no edits")
    id_ = served.say("helo")
    served.stored("helo")
    served.platform.edit(served.direct(), id_, "hello")
    eventually(lambda: served.texts() == ["hello"], "the new text")


def test_receipts_are_kept_for_messages_and_not_for_strangers(served: Account) -> None:
    served.say("hello", number=9)
    eventually(
        lambda: any(each["sender_id"] == served.person(9) for each in rows(served.store, SENDERS)),
        "asked",
    )
    assert not rows(served.store, RECEIPTS)
    served.say("hello")
    served.stored("hello")
    assert {each["channel"] for each in rows(served.store, RECEIPTS)} == {served.channel}
    assert "pairing_asked" in {each["type"] for each in rows(served.store, EVENTS)}
