"""Agents make schedules with their own rights."""

from __future__ import annotations

import pytest

from bullpen.core.clock import HOUR, MINUTE
from bullpen.core.company import change_agent
from bullpen.core.errors import OutOfReach, TooMany
from bullpen.core.message import ReplyTo
from bullpen.core.models import MESSAGES
from bullpen.core.outbox.addresses import NOWHERE
from bullpen.core.roster.agents import Scheduling
from bullpen.core.schedules.manage import (
    add_schedule,
    check_author,
    current_reply_address,
    remove_schedule,
)
from bullpen.core.schedules.timing import once_timing
from bullpen.core.store.base import Store
from tests.answers.talk import team, write
from tests.conformance.verbs import (
    AGENT,
    do,
    hire,
    refused,
    rows,
    take,
)
from tests.schedules.plans import new, plan, wait
from tests.stores import START, FakeClock, Stores

CODER = "agent:coder"


def test_an_agent_schedules_for_whom_it_may(store: Store) -> None:
    team(store, AGENT, "reviewer")
    hire(store, "stranger")
    assert plan(store, CODER).made_by == CODER
    refused(store, OutOfReach, add_schedule, new(store, agent="reviewer"), CODER)
    refused(store, OutOfReach, add_schedule, new(store, agent=None, team_id="dev"), CODER)
    do(store, change_agent, AGENT, scheduling=Scheduling.TEAM)
    plan(store, CODER, agent="reviewer")
    plan(store, CODER, team_id="dev")
    refused(store, OutOfReach, add_schedule, new(store, agent="stranger"), CODER)
    do(store, change_agent, AGENT, scheduling=Scheduling.NONE)
    refused(store, OutOfReach, add_schedule, new(store), CODER)


def test_a_teammate_hears_who_made_the_schedule(store: Store, clock: FakeClock) -> None:
    team(store, AGENT, "reviewer")
    do(store, change_agent, AGENT, scheduling=Scheduling.TEAM)
    plan(store, CODER, agent="reviewer")
    plan(store, CODER)
    wait(store, clock)
    asked = {row["agent"]: row["from_agent"] for row in rows(store, MESSAGES)}
    assert asked == {"reviewer": AGENT, AGENT: None}


def test_an_agent_has_so_many_at_once(stores: Stores, kind: str, clock: FakeClock) -> None:
    with stores.opened(stores.settings(kind, agent_schedules=2), clock) as store:
        hire(store)
        first = plan(store, CODER)
        plan(store, CODER, timing=once_timing(START + HOUR, "UTC", START))
        refused(store, TooMany, add_schedule, new(store), CODER)
        plan(store)
        wait(store, clock)
        plan(store, CODER)
        refused(store, TooMany, add_schedule, new(store), CODER)
        do(store, remove_schedule, first.id)
        plan(store, CODER)


def test_what_is_done_counts_for_an_hour(stores: Stores, kind: str, clock: FakeClock) -> None:
    with stores.opened(stores.settings(kind, agent_schedules=1), clock) as store:
        hire(store)
        plan(store, CODER, timing=once_timing(START + MINUTE, "UTC", START))
        wait(store, clock, 59 * MINUTE)
        refused(store, TooMany, add_schedule, new(store), CODER)
        clock.advance(MINUTE)
        plan(store, CODER)


def test_an_agent_touches_what_it_made_and_nothing_else(store: Store) -> None:
    hire(store)
    mine, others = plan(store, CODER), plan(store)
    check_author(CODER, mine)
    check_author("owner", mine)
    with pytest.raises(OutOfReach):
        check_author(CODER, others)


def test_what_an_agent_schedules_goes_where_its_answer_goes(store: Store) -> None:
    hire(store)
    with store.read() as tx:
        assert current_reply_address(tx, AGENT)[0] == NOWHERE
    write(store, "@coder remind me")
    take(store)
    with store.read() as tx:
        place, sender = current_reply_address(tx, AGENT)
    assert (place.channel, place.sender_id, sender) == ("slack", "U1", "Ada")
    assert place.reply_to == ReplyTo("C1", "T1", "M1")
