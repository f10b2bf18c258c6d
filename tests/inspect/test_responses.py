"""Responses as they are looked at."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from bullpen.core.clock import HOUR
from bullpen.core.errors import BadText, UnknownResponse
from bullpen.core.inspect.responses import (
    ResponseFilter,
    get_response,
    list_deliverable,
    list_responses,
    list_responses_to,
)
from bullpen.core.maintenance.retention import ARCHIVE_RESPONSES
from bullpen.core.models import RESPONSES
from bullpen.core.outbox.manage import ack_response, drop_response
from bullpen.core.settings import Settings
from bullpen.core.states import ResponseState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from tests.outbox.outgoing import answer, do, lease_one, row_of
from tests.stores import FakeClock

FAR = 1 << 62


def listed(store: Store, since: int | None = None, limit: int = 10, **more: object) -> list[int]:
    """The numbers of the responses that have this in common."""
    upto = more.pop("upto", FAR)
    assert isinstance(upto, int)
    with store.read() as tx:
        wanted = ResponseFilter(**more)  # type: ignore[arg-type]
        return [each.id for each in list_responses(tx, wanted, since, limit, upto=upto)]


def sendable(store: Store, since: int = 0, limit: int = 10) -> list[int]:
    """What may be delivered on Slack now."""
    with store.read() as tx:
        return [each.id for each in list_deliverable(tx, "slack", since, limit)]


def test_a_response_is_shown_with_all_that_is_known_of_it(store: Store) -> None:
    response = answer(store)
    row = row_of(store, response)
    with store.read() as tx:
        seen = get_response(tx, str(response))
    assert all(getattr(seen, name) == row[name] for name in seen.__slots__)
    assert seen.possible_duplicate is False


@pytest.mark.parametrize("number", ["0", "-1", "99", "x", "", "1.0", "9" * 30, "a\0b", "٣", "²"])
def test_what_is_no_number_of_a_response_is_unknown(store: Store, number: str) -> None:
    answer(store)
    with store.read() as tx, pytest.raises(UnknownResponse):
        get_response(tx, number)


def test_they_are_listed_by_what_they_have_in_common(store: Store) -> None:
    first, second = answer(store, "m1"), answer(store, "m2", "sms")
    do(store, ack_response, first)
    assert listed(store) == [second, first]
    assert listed(store, since=0) == [first, second]
    assert listed(store, since=first) == [second]
    assert listed(store, since=0, upto=first) == [first]
    assert listed(store, limit=1) == [second]
    assert listed(store, status=ResponseState.ACKED) == [first]
    assert listed(store, channel="sms") == [second]
    assert listed(store, message_id="m1") == [first]
    assert listed(store, conversation_id="m1", agent="coder") == [first]
    assert listed(store, agent="nobody") == []
    with pytest.raises(BadText):
        listed(store, agent="a\0b")


def test_what_may_be_delivered_is_what_nobody_delivers_and_is_due(
    store: Store, clock: FakeClock, settings: Settings
) -> None:
    first, second, third = (answer(store, f"m{number}") for number in range(3))
    answer(store, "m9", "sms")
    assert sendable(store) == [first, second, third]
    assert sendable(store, limit=2) == [first, second]
    assert sendable(store, since=first) == [second, third]
    assert lease_one(store)[0].id == first
    do(store, drop_response, second)
    assert sendable(store) == [third]
    do(store, ack_response, third)
    assert sendable(store) == []
    clock.advance(settings.delivery_lease_seconds * 1000)
    assert sendable(store) == [first]
    clock.advance(settings.response_hours * HOUR)
    assert sendable(store) == []


def test_one_that_waits_for_its_next_try_is_not_to_be_delivered(
    store: Store, clock: FakeClock
) -> None:
    later: Statement[None] = Statement(
        lambda: update(RESPONSES).values(available_at=clock.now() + 5_000)
    )
    response = answer(store)
    with store.write() as tx:
        tx.write(later, {})
    assert sendable(store) == []
    clock.advance(5_000)
    assert sendable(store) == [response]


def test_an_archived_one_is_found_by_its_number_and_by_its_message(
    store: Store, clock: FakeClock, settings: Settings
) -> None:
    first, last = answer(store, "m1"), answer(store, "m2")
    do(store, ack_response, first)
    clock.advance(settings.retention_hours * HOUR)
    with store.write() as tx:
        assert ARCHIVE_RESPONSES.remove_batch(tx) == 1
    assert listed(store) == [last]
    with store.read() as tx:
        assert get_response(tx, str(first)).status == "acked"
        assert [each.id for each in list_responses_to(tx, ["m2", "m1", "m1", "m3"])] == [
            first,
            last,
        ]
