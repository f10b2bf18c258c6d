"""The fence: who has lost a claim changes nothing with its token, whatever he tries."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bullpen.core.answers.complete import fail
from bullpen.core.answers.leases import expire_leases
from bullpen.core.clock import MINUTE
from bullpen.core.errors import StaleToken
from bullpen.core.message import Answer, ErrorKind, Failure, NewMessage, Outcome, RoomPost
from bullpen.core.queue.claim import extend
from bullpen.core.queue.conversations import cancel_conversation
from bullpen.core.queue.fail import release
from bullpen.core.queue.finish import finish
from bullpen.core.queue.lanes import drain_lane, pause_lane
from bullpen.core.queue.manage import cancel
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.conformance.verbs import (
    ANSWERED,
    do,
    done,
    failed,
    lane,
    refused,
    responses,
    send,
    status,
    statuses,
    take,
)
from tests.stores import FakeClock

Verb = Callable[[Transaction, str], object]

RICH = Outcome(
    answers=(Answer(message="too late"),),
    handoffs=(NewMessage(agent="other", message="too late"),),
    room_posts=(RoomPost(team_id="dev", message="too late", to=("other",)),),
)


def _fail(kind: ErrorKind) -> Verb:
    return lambda tx, token: fail(tx, token, Failure(kind=kind, error="too late"))


VERBS: dict[str, Verb] = {
    "extend": extend,
    "finish": lambda tx, token: finish(tx, token, ANSWERED),
    "finish with handoffs": lambda tx, token: finish(tx, token, RICH),
    "release": release,
    **{f"fail {kind}": _fail(kind) for kind in ErrorKind},
}


def _reaped(store: Store, clock: FakeClock, token: str, first: str) -> None:
    clock.advance(MINUTE)
    do(store, expire_leases)


def _cancelled(store: Store, clock: FakeClock, token: str, first: str) -> None:
    do(store, cancel, first)


def _conversation_cancelled(store: Store, clock: FakeClock, token: str, first: str) -> None:
    do(store, cancel_conversation, first)


def _released(store: Store, clock: FakeClock, token: str, first: str) -> None:
    do(store, release, token)


def _finished(store: Store, clock: FakeClock, token: str, first: str) -> None:
    done(store, token)


def _failed(store: Store, clock: FakeClock, token: str, first: str) -> None:
    failed(store, token)


def _taken_over(store: Store, clock: FakeClock, token: str, first: str) -> None:
    _reaped(store, clock, token, first)
    assert take(store).token != token


LOSSES = [_reaped, _cancelled, _conversation_cancelled, _released, _finished, _failed, _taken_over]


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
@pytest.mark.parametrize("lose", LOSSES, ids=lambda lose: lose.__name__.strip("_"))
def test_a_stale_token_changes_nothing(
    store: Store,
    clock: FakeClock,
    lose: Callable[[Store, FakeClock, str, str], None],
    verb: Verb,
) -> None:
    lane(store)
    lane(store, "other")
    first = send(store)
    send(store, "batch mate")
    token = take(store).token
    lose(store, clock, token, first)
    refused(store, StaleToken, verb, token)


def test_a_token_that_never_was_is_stale(store: Store, subtests: pytest.Subtests) -> None:
    lane(store)
    lane(store, "other")
    send(store)
    take(store)
    for token in (
        "coder.0000000000000000",
        "ghost.0000000000000000",
        "nonsense",
        "",
        ".",
        "coder.",
    ):
        for name, verb in VERBS.items():
            with subtests.test(token=token, verb=name):
                refused(store, StaleToken, verb, token)


@pytest.mark.parametrize("lose", LOSSES, ids=lambda lose: lose.__name__.strip("_"))
def test_a_stale_claim_changes_nothing_even_if_it_is_handed_over_whole(
    store: Store, clock: FakeClock, lose: Callable[[Store, FakeClock, str, str], None]
) -> None:
    lane(store)
    lane(store, "other")
    first = send(store)
    send(store, "batch mate")
    found = take(store)
    lose(store, clock, found.token, first)
    refused(store, StaleToken, lambda tx: finish(tx, found, RICH))


def test_a_lease_that_ended_holds_until_somebody_takes_it_back(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    sent = send(store)
    found = take(store)
    clock.advance(10 * MINUTE)
    done(store, found.token)
    assert status(store, sent) == "completed"
    with store.write() as tx:
        assert expire_leases(tx) == 0


@pytest.mark.parametrize("close", [pause_lane, drain_lane])
def test_a_run_outlives_the_pause_of_its_lane(
    store: Store, close: Callable[[Transaction, str, str], None]
) -> None:
    lane(store)
    sent = send(store)
    found = take(store)
    do(store, close, "coder", "lunch")
    do(store, extend, found.token)
    done(store, found.token)
    assert status(store, sent) == "completed"


def test_a_run_that_was_done_twice_answers_once(store: Store, clock: FakeClock) -> None:
    lane(store)
    lane(store, "other")
    send(store)
    slow = take(store)
    clock.advance(MINUTE)
    do(store, expire_leases)
    quick = take(store)
    done(store, quick.token)
    refused(store, StaleToken, lambda tx: finish(tx, slow.token, RICH))
    assert len(responses(store)) == 1
    assert statuses(store) == {"completed": 1}
