"""Several processes at one response: look-ups, receipts of the client, proofs of the platform."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest

from bullpen.core.channels.pairing import MAX_WAITING, request_pairing
from bullpen.core.errors import StaleToken
from bullpen.core.models import RESPONSES, SENDERS
from bullpen.core.outbox.delivery import ack, begin_part, end_part, mark_unknown
from bullpen.core.outbox.parts import PartReceipt, SendingPart
from bullpen.core.outbox.recovery import found, lease_unknown, not_sent, prove
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.outbox.outgoing import answer_many, lease, rows

COUNT = 24
PART = SendingPart(0, upto=9, last=True)


def together(*sides: Callable[[], None]) -> None:
    """Run these beside each other; an error of one is an error of the test."""
    start = threading.Barrier(len(sides))
    errors: list[BaseException] = []

    def run(side: Callable[[], None]) -> None:
        try:
            start.wait(30)
            side()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(side,)) for side in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


def begun(store: Store) -> dict[int, str]:
    """Responses whose part is being sent; gives their tokens by id."""
    answer_many(store, [f"slack_{number}" for number in range(COUNT)])
    leased = lease(store, limit=COUNT)
    with store.write() as tx:
        for each in leased:
            begin_part(tx, each.claim_token or "", PART)
    return {each.id: each.claim_token or "" for each in leased}


def mark_all_unknown(store: Store) -> None:
    """Responses whose part was sent without an answer."""
    tokens = begun(store)
    with store.write() as tx:
        for token in tokens.values():
            mark_unknown(tx, token, "no answer")


def unknown(store: Store) -> dict[int, str]:
    """Responses that one client looks up; gives the tokens of the look-ups by id."""
    mark_all_unknown(store)
    with store.write() as tx:
        leased = lease_unknown(tx, "slack", "client-1", COUNT)
    return {each.id: each.claim_token or "" for each in leased}


def in_turn(
    store: Store, verb: Callable[[Transaction, int, str], object], of: dict[int, str]
) -> None:
    """Apply a verb to each of these in a transaction of its own; a void token is no error."""
    for response, token in of.items():
        try:
            with store.write() as tx:
                verb(tx, response, token)
        except StaleToken:
            pass


def _prove(tx: Transaction, response: int, _: str) -> None:
    prove(tx, "slack", response, 0, f"ts-{response}")


def _check_counted_once(store: Store) -> None:
    for row in rows(store, RESPONSES):
        assert row["parts_sent"] == 1, row
        assert row["part_receipts"] == f'[{{"id": "ts-{row["id"]}", "upto": 9}}]'
        assert row["status"] == "acked"


def test_a_proof_beside_the_receipt_of_the_sender_counts_the_part_once(store: Store) -> None:
    tokens = begun(store)

    def send(tx: Transaction, response: int, token: str) -> None:
        end_part(tx, token, PartReceipt(f"ts-{response}", upto=9))

    together(lambda: in_turn(store, send, tokens), lambda: in_turn(store, _prove, tokens))
    in_turn(store, lambda tx, _, token: ack(tx, token), tokens)
    _check_counted_once(store)


@pytest.mark.parametrize("answer", ["found", "not_sent"])
def test_a_proof_beside_a_look_up_counts_the_part_once(store: Store, answer: str) -> None:
    tokens = unknown(store)

    def look_up(tx: Transaction, response: int, token: str) -> None:
        if answer == "found":
            found(tx, token, f"ts-{response}")
        else:
            not_sent(tx, token)

    together(
        lambda: in_turn(store, look_up, tokens),
        lambda: in_turn(store, _prove, tokens),
        lambda: in_turn(store, _prove, tokens),
    )
    _check_counted_once(store)


def test_a_response_is_looked_up_by_one_client_at_a_time(store: Store) -> None:
    mark_all_unknown(store)
    taken: Counter[int] = Counter()

    def look_up(worker: str) -> None:
        while True:
            with store.write() as tx:
                leased = lease_unknown(tx, "slack", worker, 3)
            if not leased:
                return
            taken.update([each.id for each in leased])

    together(*(lambda worker=worker: look_up(worker) for worker in ("a", "b", "c")))
    assert len(taken) == COUNT
    assert set(taken.values()) == {1}


def test_of_many_strangers_at_once_three_get_a_code(store: Store) -> None:
    codes: list[str | None] = []

    def ask(sender: str) -> None:
        with store.write() as tx:
            code = request_pairing(tx, "slack", sender, sender)
        codes.append(code)

    together(*(lambda sender=f"U{number}": ask(sender) for number in range(8)))
    assert len([code for code in codes if code]) == MAX_WAITING
    assert len([row for row in rows(store, SENDERS) if row["code"]]) == MAX_WAITING


def test_one_stranger_who_writes_at_once_twice_gets_one_reply(store: Store) -> None:
    codes: list[str | None] = []

    def ask() -> None:
        with store.write() as tx:
            code = request_pairing(tx, "slack", "U1", "Ann")
        codes.append(code)

    together(*[ask] * 4)
    assert len([code for code in codes if code]) == 1
    assert len(rows(store, SENDERS)) == 1
