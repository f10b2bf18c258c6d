"""Intake gathers what arrives: many messages in one commit, in the order of their writing."""

from __future__ import annotations

import asyncio
import logging

import pytest
from psycopg.pq.abc import PGresult

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.inbound import Chat, Inbound, Payload, Person, Source, Written
from bullpen.channels.incoming.decide import Incoming, IntakeSettings
from bullpen.channels.incoming.follow_up import NOTHING, Taken
from bullpen.channels.incoming.queue import IntakeQueue
from bullpen.core.channels.senders import Tier, set_tier
from bullpen.core.message import NewMessage
from bullpen.core.models import MESSAGES
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.store.base import Store
from bullpen.core.store.postgres_pipeline import PendingResult, PipelineConnection
from bullpen.core.store.transaction import Transaction
from tests.channels.recording import NoFiles
from tests.conformance.verbs import hire, rows

AGENT = "coder"


class Storing(Incoming):
    """Stores the text of each message, and fails at `poison`."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []

    def is_ignored(self, inbound: Inbound) -> bool:
        """Everything is of interest."""
        return False

    def take(self, tx: Transaction, inbound: Inbound) -> Taken:
        """Store it."""
        assert isinstance(inbound, Written)
        self.transactions.append(tx)
        new = NewMessage(agent=AGENT, message=inbound.text, channel="slack", sender="Ann")
        enqueue(tx, new)
        if inbound.text == "poison":
            raise ZeroDivisionError
        return NOTHING


class Connected:
    """Follows no connection."""

    def connected(self, connections: int = 1) -> None:
        """Nothing follows."""

    def disconnected(self, reason: str) -> None:
        """Nothing follows."""

    def heard(self) -> None:
        """Nothing follows."""


def written(payload: Payload) -> Written:
    """The message of a payload."""
    cursor, text = str(payload["cursor"]), str(payload["text"])
    chat = Chat(id=str(payload.get("chat", "C1")), direct=True)
    source = Source(chat=chat, person=Person(id="U1"), at=int(cursor) // 10, keys=(cursor,))
    return Written(source=source, text=text, cursor=cursor)


@pytest.fixture
def open_store(store: Store) -> Store:
    """A database with an agent."""
    hire(store, AGENT)
    return store


def take(
    store: Store, *payloads: Payload, reorders: bool = True, storing: Storing | None = None
) -> tuple[list[str], int]:
    """The stored texts after these payloads arrived at once, and the transactions for them."""
    storing = storing or Storing()

    async def work() -> None:
        shared = AsyncStore(store)
        log = logging.getLogger("test")
        queue = IntakeQueue(
            shared, written, storing, Connected(), lambda _: None, log, reorders=reorders
        )
        futures = [queue.add(each) for each in payloads]
        running = asyncio.create_task(queue.run())
        await asyncio.gather(*futures)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        shared.close()

    asyncio.run(work())
    return [each["message"] for each in rows(store, MESSAGES)], len(
        set(map(id, storing.transactions))
    )


def test_messages_that_arrive_together_share_a_commit(open_store: Store) -> None:
    texts, commits = take(open_store, *({"cursor": n, "text": f"m{n}"} for n in range(50)))
    assert texts == [f"m{n}" for n in range(50)]
    assert commits == 1


def test_one_bad_message_of_a_batch_is_left_out_and_no_other_is_stored_twice(
    open_store: Store,
) -> None:
    given = ("a", "b", "poison", "c")
    texts, _ = take(open_store, *({"cursor": n, "text": each} for n, each in enumerate(given)))
    assert texts == ["a", "b", "c"]


def test_neighbours_that_two_connections_swapped_are_stored_as_they_were_written(
    open_store: Store,
) -> None:
    order = (1, 0, 3, 2, 9, 10, 8)
    texts, _ = take(open_store, *({"cursor": n, "text": f"m{n}"} for n in order))
    assert texts == [f"m{n}" for n in sorted(order)]


def test_where_nothing_is_swapped_messages_are_stored_as_they_arrived(open_store: Store) -> None:
    texts, _ = take(open_store, *({"cursor": n, "text": f"m{n}"} for n in (2, 1)), reorders=False)
    assert texts == ["m2", "m1"]


def test_the_chats_of_a_batch_keep_their_places(open_store: Store) -> None:
    given = ((5, "C1"), (2, "C2"), (4, "C1"), (1, "C2"))
    texts, _ = take(
        open_store, *({"cursor": n, "text": f"{chat} {n}", "chat": chat} for n, chat in given)
    )
    assert texts == ["C1 4", "C2 1", "C1 5", "C2 2"]


@pytest.mark.parametrize(
    "kind", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
def test_a_message_of_a_known_person_takes_two_round_trips(
    open_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A burst is stored one message after the other, so each round trip delays the last one."""
    settings = IntakeSettings(default_agent=AGENT)
    incoming = Incoming("sms", "x", settings, NoFiles(), has_buttons=False)
    waits = []
    wait = PipelineConnection.wait

    def counted(pipe: PipelineConnection, reply: PendingResult) -> PGresult:
        if reply.result is None:
            waits.append(reply)
        return wait(pipe, reply)

    def take_one(tx: Transaction, number: int) -> int:
        before = len(waits)
        taken = incoming.take(tx, written({"cursor": number, "text": f"m{number}"}))
        assert len(taken.accepted) == 1
        return len(waits) - before

    with open_store.write() as tx:
        set_tier(tx, "sms", "U1", Tier.MEMBER, by="owner")
        incoming.take(tx, written({"cursor": 1, "text": "first"}))
        monkeypatch.setattr(PipelineConnection, "wait", counted)
        assert [take_one(tx, each) for each in range(2, 5)] == [2, 2, 2]
        monkeypatch.undo()
