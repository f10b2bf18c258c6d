"""Each verb's one transaction, with what must be in the store before it: to be cut at will."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bullpen.core.answers.complete import fail
from bullpen.core.answers.leases import expire_leases
from bullpen.core.message import Answer, ErrorKind, Failure, Outcome, RoomPost
from bullpen.core.outbox.delivery import ack, begin_part, end_part, mark_unknown
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.outbox.parts import PartReceipt
from bullpen.core.outbox.recovery import (
    cannot_tell,
    found,
    lease_unknown,
    look_again,
    not_sent,
    prove,
)
from bullpen.core.queue.claim import claim, extend
from bullpen.core.queue.conversations import cancel_conversation
from bullpen.core.queue.enqueue import enqueue_many
from bullpen.core.queue.fail import release
from bullpen.core.queue.finish import finish
from bullpen.core.queue.manage import retry
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.transaction import Transaction
from tests.crash.fuse import Fuse, die_when_commit_is_sent
from tests.crash.work import CHANNEL, HELPERS, TEAM, Order, Task
from tests.stores import FakeClock

CROWD = "crowd"

Act = Callable[[Transaction, str], object]


@dataclass(frozen=True, slots=True)
class Cut:
    """A transaction to be cut: how to prepare for it, and what it does."""

    prepare: Callable[[Store], str]
    """Gives the token or id that the transaction is about."""
    act: Act


def _nothing(store: Store) -> str:
    return ""


def _three(store: Store) -> str:
    with store.write() as tx:
        enqueue_three(tx, "")
    return "cut-0"


def enqueue_three(tx: Transaction, _: str) -> None:
    """Messages for two lanes."""
    news = [Task("cut", number, Order.ANSWER).to(CROWD, f"cut-{number}") for number in range(3)]
    enqueue_many(tx, [*news, Task("cut", 0, Order.ANSWER).to(HELPERS[0], "cut-helper")])


def _claimed(store: Store) -> str:
    _three(store)
    with store.write() as tx:
        found = claim(tx, "cut", agent=CROWD)
    assert found is not None
    assert len(found.messages) == 3
    return found.token


def _answered(store: Store) -> str:
    token = _claimed(store)
    with store.write() as tx:
        finish_all(tx, token)
    return token


def _leased(store: Store) -> str:
    _answered(store)
    with store.write() as tx:
        (delivery, _) = lease_responses(tx, CHANNEL, "cut")
    assert delivery.claim_token is not None
    return delivery.claim_token


def _begun(store: Store) -> str:
    token = _leased(store)
    with store.write() as tx:
        begin_part(tx, token)
    return token


def _looked_up(store: Store) -> str:
    token = _begun(store)
    with store.write() as tx:
        mark_unknown(tx, token, "no answer")
    with store.write() as tx:
        (delivery,) = lease_unknown(tx, CHANNEL, "cut")
    assert delivery.claim_token is not None
    return delivery.claim_token


def _alone(store: Store) -> str:
    """The claim of one of three that failed together."""
    token = _claimed(store)
    with store.write() as tx:
        refuse(tx, token)
        found = claim(tx, "cut", agent=CROWD)
    assert found is not None
    assert [message.message_id for message in found.messages] == ["cut-0"]
    return found.token


def _dead(store: Store) -> str:
    token = _alone(store)
    with store.write() as tx:
        refuse(tx, token)
    return "cut-0"


def finish_all(tx: Transaction, token: str) -> None:
    """Two answers, a handoff, and a room post to two agents."""
    again = Task("cut", 0, Order.ANSWER)
    finish(
        tx,
        token,
        Outcome(
            answers=(Answer(message="one"), Answer(message="two")),
            handoffs=(again.to(HELPERS[0]),),
            room_posts=(RoomPost(team_id=TEAM, message=str(again), to=HELPERS),),
        ),
    )


def refuse(tx: Transaction, token: str) -> None:
    """A death with a notice; of several, each is tried alone."""
    fail(tx, token, Failure(kind=ErrorKind.PERMANENT, error="will not"))


def _stumble(tx: Transaction, token: str) -> None:
    fail(tx, token, Failure(kind=ErrorKind.RETRYABLE, error="stumbled", retry_after=1000))


def _limited(tx: Transaction, token: str) -> None:
    fail(tx, token, Failure(kind=ErrorKind.RATE_LIMIT, error="slow down", retry_after=1000))


def _extend_later(tx: Transaction, token: str) -> None:
    tx.now += 1000
    extend(tx, token)


def _reap_later(tx: Transaction, _: str) -> None:
    tx.now += 3_600_000
    assert expire_leases(tx) == 1


def _look_up_later(tx: Transaction, _: str) -> None:
    tx.now += 3_600_000
    assert lease_responses(tx, CHANNEL, "cut") != []
    assert len(lease_unknown(tx, CHANNEL, "cut")) == 1


def _response_of(token: str) -> int:
    return int(token.partition(".")[0])


CUTS: dict[str, Cut] = {
    "enqueue": Cut(_nothing, enqueue_three),
    "claim": Cut(_three, lambda tx, _: claim(tx, "cut", agent=CROWD)),
    "extend": Cut(_claimed, _extend_later),
    "finish": Cut(_claimed, finish_all),
    "fail": Cut(_claimed, _stumble),
    "rate limit": Cut(_claimed, _limited),
    "failed batch": Cut(_claimed, refuse),
    "death": Cut(_alone, refuse),
    "reap": Cut(_claimed, _reap_later),
    "release": Cut(_claimed, release),
    "cancel": Cut(_claimed, lambda tx, _: cancel_conversation(tx, "cut-0")),
    "retry": Cut(_dead, retry),
    "lease": Cut(_answered, lambda tx, _: lease_responses(tx, CHANNEL, "cut")),
    "begin_part": Cut(_leased, begin_part),
    "end_part": Cut(_begun, lambda tx, token: end_part(tx, token, PartReceipt("receipt"))),
    "ack": Cut(_leased, ack),
    "unknown": Cut(_begun, lambda tx, token: mark_unknown(tx, token, "no answer")),
    "look-up": Cut(_begun, _look_up_later),
    "found": Cut(_looked_up, lambda tx, token: found(tx, token, "receipt")),
    "not sent": Cut(_looked_up, not_sent),
    "cannot tell": Cut(_looked_up, lambda tx, token: cannot_tell(tx, token, "no history")),
    "look again": Cut(_looked_up, lambda tx, token: look_again(tx, token, 1000)),
    "proof": Cut(_begun, lambda tx, token: prove(tx, CHANNEL, _response_of(token), 0, "receipt")),
}


def die_at_statement(
    settings: Settings, now: int, name: str, argument: str, statement: int, commit_sent: bool
) -> None:
    """One transaction, killed before its n-th statement; one later than the last is its COMMIT."""
    store = open_store(settings, clock=FakeClock(now))
    with store.write() as tx:
        fuse = Fuse(tx, statement)
        CUTS[name].act(tx, argument)
        fuse.step()
        if commit_sent:
            die_when_commit_is_sent()
    store.close()
