"""What runs and deliveries do in the crash tests: decided by the message's text alone.

A text is `SERIES NUMBER ORDER`: the order says how the run ends, so that the account can tell from
the rows what there must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from bullpen.core.answers.complete import fail
from bullpen.core.company import add_agent
from bullpen.core.message import (
    ROOM,
    Answer,
    Claim,
    ErrorKind,
    Failure,
    Message,
    NewMessage,
    Outcome,
    ReplyTo,
    RoomPost,
    Usage,
)
from bullpen.core.outbox.delivery import Delivery, ack, begin_part, end_part
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.outbox.parts import SendingPart
from bullpen.core.outbox.recovery import found, lease_unknown, not_sent
from bullpen.core.queue.claim import claim
from bullpen.core.queue.finish import finish
from bullpen.core.queue.lanes import Batching, LanePolicy
from bullpen.core.roster.agents import Agent
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.crash.children import append, lines

CHANNEL = "slack"
TEAM = "team"
PARTS = 3
"""In so many parts every response is sent."""

HELPERS = ("helper", "second")
SINGLE = ("alpha", "beta")
"""Their runs answer one message each."""
BATCHED = ("crowd",)
"""Its runs answer all that waits."""


class Order(StrEnum):
    """How the run of a message ends."""

    ANSWER = "answer"
    TWICE = "twice"
    HAND = "hand"
    POST = "post"
    STUMBLE = "stumble"
    REFUSE = "refuse"


ANSWERS = {Order.TWICE: 2, Order.HAND: 0, Order.POST: 0}
CHILDREN = {Order.HAND: 1, Order.POST: len(HELPERS)}


@dataclass(frozen=True, slots=True)
class Task:
    """What a message's text says."""

    series: str
    number: int
    order: Order

    def __str__(self) -> str:
        return f"{self.series} {self.number} {self.order}"

    @classmethod
    def parse(cls, text: str) -> Task:
        """The task of this text."""
        series, number, order = text.split()
        return cls(series, int(number), Order(order))

    def to(self, agent: str, message_id: str | None = None) -> NewMessage:
        """The message that asks for it."""
        return NewMessage(
            agent=agent,
            message=str(self),
            message_id=message_id,
            channel=CHANNEL,
            sender="Ada",
            sender_id="U1",
            reply_to=ReplyTo("C1"),
        )


def open_lanes(store: Store) -> None:
    """Take on the agents that the tasks go to."""
    with store.write() as tx:
        for agent in (*SINGLE, *HELPERS):
            add_agent(tx, Agent(id=agent), LanePolicy(batching=Batching.ONE))
        for agent in BATCHED:
            add_agent(tx, Agent(id=agent))


def answer(claimed: Claim) -> Outcome | Failure:
    """What a run of this claim gives."""
    first = Task.parse(claimed.primary.message)
    usage = Usage(provider="crash", output_tokens=1)
    if first.order is Order.REFUSE:
        return Failure(kind=ErrorKind.PERMANENT, error="will not")
    if first.order is Order.STUMBLE and claimed.primary.retry_count == 0:
        return Failure(kind=ErrorKind.RETRYABLE, error="stumbled", retry_after=0)
    text = "\n".join(message.message for message in claimed.messages)
    again = Task(first.series, first.number, Order.ANSWER)
    return Outcome(
        answers=tuple(Answer(message=text) for _ in range(answers_to(claimed.primary))),
        handoffs=(again.to(HELPERS[0]),) if first.order is Order.HAND else (),
        room_posts=(RoomPost(team_id=TEAM, message=str(again), to=HELPERS),)
        if first.order is Order.POST
        else (),
        usage=usage,
    )


def answers_to(message: Message) -> int:
    """How many answers its completed run leaves; a room post is read and not answered."""
    if message.channel == ROOM:
        return 0
    return ANSWERS.get(Task.parse(message.message).order, 1)


def settle(tx: Transaction, claimed: Claim, result: Outcome | Failure) -> None:
    """End a claim as its run ended, the way the processor does."""
    if isinstance(result, Outcome):
        finish(tx, claimed, result)
    else:
        fail(tx, claimed.token, result)


def work_off(store: Store) -> int:
    """Claim and answer until nothing waits; gives the number of runs."""
    count = 0
    while True:
        with store.write(durable=False) as tx:
            claimed = claim(tx, "healthy")
        if claimed is None:
            return count
        with store.write() as tx:
            settle(tx, claimed, answer(claimed))
        count += 1


class Step(StrEnum):
    """The moments of a delivery."""

    BEFORE_BEGIN_COMMIT = "before begin_part's commit"
    BEGUN = "after begin_part, before sending"
    SENT = "after sending, before end_part"
    BEFORE_END_COMMIT = "before end_part's commit"
    ENDED = "after end_part"
    BEFORE_ACK_COMMIT = "before ack's commit"
    ACKED = "after ack"


class Watcher(Protocol):
    """Is told of each moment, and may not let it pass."""

    def __call__(self, step: Step, part: int, tx: Transaction | None = None, /) -> None: ...


def nobody(step: Step, part: int, tx: Transaction | None = None) -> None:
    """Let every moment pass."""


@dataclass(frozen=True, slots=True)
class Platform:
    """Where responses are sent: a file with a line for each part that arrived."""

    path: Path

    def take(self, response: int, part: int) -> str:
        """A part arrives; gives its receipt."""
        append(self.path, f"{response} {part}")
        return f"receipt-{response}-{part}"

    def arrived(self, response: int) -> list[int]:
        """The parts of a response that arrived, in their order."""
        pairs = (line.split() for line in lines(self.path))
        return [int(part) for number, part in pairs if int(number) == response]

    def everything(self) -> dict[int, list[int]]:
        """The parts that arrived, by response."""
        found: dict[int, list[int]] = {}
        for line in lines(self.path):
            number, part = line.split()
            found.setdefault(int(number), []).append(int(part))
        return found


def deliver(
    store: Store, platform: Platform, worker: str = "client", watch: Watcher = nobody
) -> int:
    """Lease one response and send it; gives how many there were."""
    with store.write() as tx:
        leased = lease_responses(tx, CHANNEL, worker, limit=1)
    for each in leased:
        send(store, platform, each, watch)
    return len(leased)


def send(store: Store, platform: Platform, delivery: Delivery, watch: Watcher = nobody) -> None:
    """Send the parts of a leased response that were not sent."""
    token = delivery.claim_token
    assert token is not None
    for part in range(delivery.parts_sent, PARTS):
        sending = SendingPart(part, upto=10 * (part + 1), last=part == PARTS - 1)
        with store.write() as tx:
            begin_part(tx, token, sending)
            watch(Step.BEFORE_BEGIN_COMMIT, part, tx)
        watch(Step.BEGUN, part)
        receipt = platform.take(delivery.id, part)
        watch(Step.SENT, part)
        with store.write() as tx:
            end_part(tx, token, sending.receipt(receipt))
            watch(Step.BEFORE_END_COMMIT, part, tx)
        watch(Step.ENDED, part)
    with store.write() as tx:
        ack(tx, token)
        watch(Step.BEFORE_ACK_COMMIT, PARTS - 1, tx)
    watch(Step.ACKED, PARTS - 1)


def look_up_all(store: Store, platform: Platform) -> int:
    """Ask the platform for the parts whose outcome is unknown; gives how many there were."""
    with store.write() as tx:
        unknown = lease_unknown(tx, CHANNEL, "healthy", limit=100)
    for each in unknown:
        part = each.part
        assert part is not None
        with store.write() as tx:
            if part.part in platform.arrived(each.id):
                found(tx, each.claim_token or "", f"receipt-{each.id}-{part.part}")
            else:
                not_sent(tx, each.claim_token or "")
    return len(unknown)


def deliver_all(store: Store, platform: Platform) -> None:
    """Send everything that is due."""
    while deliver(store, platform, "healthy"):
        pass
