"""kill -9 between the steps of a delivery: what was sent is not sent again, nor called unsent."""

from __future__ import annotations

import signal

import pytest

from bullpen.core.models import RESPONSES
from bullpen.core.outbox.manage import retry_response
from bullpen.core.outbox.parts import decode_receipts
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.crash.account import Account, Row, check_integrity, rows
from tests.crash.children import Children
from tests.crash.recovery import later, run_to_the_end
from tests.crash.victim import LOST, Death, live
from tests.crash.work import PARTS, Order, Platform, Step, deliver_all, look_up_all

ALL = list(range(PARTS))
UNKNOWABLE = (Step.BEGUN, Step.SENT, Step.BEFORE_END_COMMIT)
"""Between begin and end nobody can tell whether the part arrived."""

DEATHS = [
    Death(step, part)
    for step in Step
    for part in range(PARTS)
    if part == PARTS - 1 or step not in (Step.BEFORE_ACK_COMMIT, Step.ACKED)
]


def _response(store: Store) -> Row:
    (found,) = rows(store, RESPONSES)
    return found


@pytest.mark.parametrize("death", DEATHS, ids=lambda death: f"{death.point}, part {death.part}")
def test_kill_9_in_a_delivery_repeats_no_part_and_loses_none_in_silence(
    settings: Settings, children: Children, platform: Platform, death: Death
) -> None:
    code = children.run(live, settings, platform.path, death, Order.ANSWER)
    assert code == -signal.SIGKILL
    sent = platform.arrived(1)
    with later(settings) as store:
        run_to_the_end(store, platform)
        account = Account(store)
        account.check()
        account.check_deliveries(platform)
        response = _response(store)
        if death.point in UNKNOWABLE:
            assert response["status"] == "unknown"
            assert platform.arrived(1) == sent
            assert response["parts_sent"] == death.part
        else:
            assert response["status"] == "acked"
            assert platform.arrived(1) == ALL
        check_integrity(store)


@pytest.mark.parametrize("death", DEATHS, ids=lambda death: f"{death.point}, part {death.part}")
def test_kill_9_in_a_delivery_is_settled_by_a_look_up_and_each_part_arrives_once(
    settings: Settings, children: Children, platform: Platform, death: Death
) -> None:
    children.run(live, settings, platform.path, death, Order.ANSWER)
    with later(settings) as store:
        run_to_the_end(store, platform)
        assert look_up_all(store, platform) == (1 if death.point in UNKNOWABLE else 0)
        deliver_all(store, platform)
        response = _response(store)
        assert response["status"] == "acked"
        assert platform.arrived(1) == ALL
        assert not response["possible_duplicate"]
        assert [each.upto for each in decode_receipts(response["part_receipts"])] == [10, 20, 30]


def test_an_unknown_delivery_goes_on_where_it_was_when_a_person_says_so_and_is_labelled(
    settings: Settings, children: Children, platform: Platform
) -> None:
    children.run(live, settings, platform.path, Death(Step.SENT, 1), Order.ANSWER)
    with later(settings) as store:
        run_to_the_end(store, platform)
        with store.write() as tx:
            retry_response(tx, _response(store)["id"])
        assert _response(store)["possible_duplicate"]
        deliver_all(store, platform)
        assert _response(store)["status"] == "acked"
        assert platform.arrived(1) == [0, 1, 1, 2]


@pytest.mark.parametrize("order", [Order.REFUSE, Order.TWICE])
def test_a_sender_that_slept_through_its_lease_changes_nothing_when_it_wakes(
    settings: Settings, children: Children, platform: Platform, order: Order
) -> None:
    asleep = Death(Step.ENDED, 1, by=signal.SIGSTOP)
    victim = children.start(live, settings, platform.path, asleep, order)
    victim.wait_until_stopped()
    with later(settings, alone=False) as store:
        deliver_all(store, platform)
        before = rows(store, RESPONSES)
        victim.send(signal.SIGCONT)
        assert victim.wait() == LOST
        assert rows(store, RESPONSES) == before
        assert platform.arrived(1) == ALL
