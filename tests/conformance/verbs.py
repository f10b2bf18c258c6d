"""The queue's verbs, each in a transaction of its own, and what the tables hold afterwards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Table, select

from bullpen.core.answers.complete import fail
from bullpen.core.company import add_agent
from bullpen.core.errors import BullpenError
from bullpen.core.events.base import MessageRef, UnknownEvent
from bullpen.core.events.vocabulary import read_event
from bullpen.core.message import Answer, Claim, ErrorKind, Failure, NewMessage, Outcome
from bullpen.core.models import EVENTS, LANES, MESSAGES, MESSAGES_ARCHIVE, RESPONSES, whole_schema
from bullpen.core.queue.claim import claim
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.finish import finish
from bullpen.core.queue.lanes import LanePolicy, create_lane
from bullpen.core.roster.agents import Agent
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement

Row = dict[str, Any]
Given = TypeVar("Given")
Dump = dict[str, list[tuple[object, ...]]]

AGENT = "coder"
ANSWERED = Outcome(answers=(Answer(message="done"),))


def lane(store: Store, agent: str = AGENT, policy: LanePolicy | None = None) -> str:
    """Open a lane."""
    with store.write() as tx:
        create_lane(tx, agent, policy)
    return agent


def hire(store: Store, agent: str = AGENT, policy: LanePolicy | None = None, **more: Any) -> str:  # noqa: ANN401
    """Take on an agent, with its lane. What is not said is Agent's default."""
    with store.write() as tx:
        add_agent(tx, Agent(id=agent, **more), policy)
    return agent


def send(store: Store, text: str = "hello", agent: str = AGENT, **more: Any) -> str:  # noqa: ANN401
    """Enqueue one message; gives its id. What is not said is NewMessage's default."""
    with store.write() as tx:
        return enqueue(tx, NewMessage(agent=agent, message=text, **more)).message_id


def try_claim(store: Store, agent: str | None = None, limit: int | None = None) -> Claim | None:
    """Claim what there is."""
    with store.write(durable=False) as tx:
        return claim(tx, "worker-1", agent=agent, limit=limit)


def take(store: Store, agent: str | None = None, limit: int | None = None) -> Claim:
    """Claim what must be there."""
    found = try_claim(store, agent, limit)
    assert found is not None, "there was nothing to claim"
    return found


def do(store: Store, verb: Callable[..., object], *given: object, **more: object) -> None:
    """Run one verb in a transaction of its own."""
    with store.write() as tx:
        verb(tx, *given, **more)


def done(store: Store, token: str, outcome: Outcome = ANSWERED) -> None:
    """Finish a claim."""
    do(store, finish, token, outcome)


def failed(
    store: Store,
    token: str,
    kind: ErrorKind = ErrorKind.RETRYABLE,
    error: str = "it broke",
    retry_after: int | None = None,
) -> None:
    """Fail a claim."""
    do(store, fail, token, Failure(kind=kind, error=error, retry_after=retry_after))


def rows(store: Store, table: Table) -> list[Row]:
    """All rows of a table, in the order of its key."""
    with store.read() as tx:
        found = tx.all(_everything(table), {})
    names = table.c.keys()
    return [dict(zip(names, row, strict=True)) for row in found]


@cache
def _everything(table: Table) -> Statement[tuple[object, ...]]:
    return Statement(lambda: select(*table.c).order_by(*table.primary_key.columns))


def dump(store: Store) -> Dump:
    """Everything that the database holds."""
    return {
        name: [tuple(row.values()) for row in rows(store, table)]
        for name, table in whole_schema().tables.items()
    }


def message(store: Store, message_id: str) -> Row:
    """One message's row."""
    (found,) = (row for row in rows(store, MESSAGES) if row["message_id"] == message_id)
    return found


def status(store: Store, message_id: str) -> str:
    """One message's state."""
    return str(message(store, message_id)["status"])


def statuses(store: Store) -> dict[str, int]:
    """How many messages are in each state."""
    return dict(Counter(str(row["status"]) for row in rows(store, MESSAGES)))


def lane_row(store: Store, agent: str = AGENT) -> Row:
    """One lane's row."""
    (found,) = (row for row in rows(store, LANES) if row["agent"] == agent)
    return found


def events(store: Store, kind: str | None = None) -> list[Row]:
    """The events, of one type if it is given; each is as its class declares it."""
    found = rows(store, EVENTS)
    for row in found:
        about = MessageRef(row["agent"], row["conversation_id"], row["message_id"])
        data = json.loads(row["data"] or "{}")
        event = read_event(row["type"], about, data)
        assert not isinstance(event, UnknownEvent), row
        assert event.data == data, f"{row['type']} has keys that it does not declare: {data}"
    return [row for row in found if kind in (None, row["type"])]


def responses(store: Store) -> list[Row]:
    """The responses, the oldest first."""
    return rows(store, RESPONSES)


def ids_of(found: Claim) -> list[str]:
    """The ids of the claimed messages, the primary first."""
    return [each.message_id for each in found.messages]


def texts_of(found: Claim) -> list[str]:
    """What the claimed messages say, the primary first."""
    return [each.message for each in found.messages]


def in_order(store: Store, agent: str | None = None) -> list[str]:
    """The texts of all messages that can be claimed, one after the other, each finished."""
    texts = []
    while (found := try_claim(store, agent, limit=1)) is not None:
        texts += texts_of(found)
        done(store, found.token)
    return texts


def to_archive(store: Store, message_id: str) -> None:
    """Move a message to the archive, as retention does after a day."""
    with store.engine.begin() as connection:
        names = [column.name for column in MESSAGES_ARCHIVE.c]
        source = select(*(MESSAGES.c[name] for name in names)).where(
            MESSAGES.c.message_id == message_id
        )
        connection.execute(MESSAGES_ARCHIVE.insert().from_select(names, source))
        connection.execute(MESSAGES.delete().where(MESSAGES.c.message_id == message_id))


def refused(
    store: Store, kind: type[BullpenError], verb: Callable[..., object], *given: object
) -> BullpenError:
    """The error of this kind that the verb raises; neither then nor after a commit is it half done.

    The transaction is committed all the same, as that of a caller who goes on after the error.
    """
    before = dump(store)
    caught: BullpenError | None = None
    with store.write() as tx:
        try:
            verb(tx, *given)
        except kind as error:
            caught = error
    assert caught is not None, f"{kind.__name__} was not raised"
    assert dump(store) == before
    assert caught.code
    assert caught.hint
    return caught


class _BrokenOff(Exception):
    """What happens to a transaction that is given up."""


@contextmanager
def broken_off(transaction: AbstractContextManager[Given]) -> Iterator[Given]:
    """The transaction, which an error ends after the block."""
    with suppress(_BrokenOff), transaction as given:
        yield given
        raise _BrokenOff
