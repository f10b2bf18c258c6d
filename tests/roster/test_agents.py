"""Agents: their ids, what a change keeps, and what becomes of one that is let go."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bullpen.core.answers.complete import fail
from bullpen.core.company import add_agent, change_agent, remove_agent
from bullpen.core.errors import (
    BadName,
    BadText,
    LaneBusy,
    LaneClosed,
    NameTaken,
    StaleToken,
    UnknownAgent,
)
from bullpen.core.message import ErrorKind, Failure
from bullpen.core.models import AGENT_MESSAGES, AGENTS, LANES
from bullpen.core.queue.fail import release
from bullpen.core.queue.lanes import LanePolicy, Ordering, Overflow, pause_lane
from bullpen.core.queue.manage import confirm_run_ended
from bullpen.core.roster.agents import (
    Agent,
    AgentChange,
    Context,
    Permission,
    find_agent,
    get_agent,
    list_agents,
)
from bullpen.core.roster.teams import Team, add_team, change_team, find_team
from bullpen.core.store.base import Store
from tests.conformance.conftest import lanes_tell_the_truth  # noqa: F401
from tests.conformance.verbs import (
    AGENT,
    do,
    done,
    events,
    hire,
    lane_row,
    message,
    refused,
    rows,
    send,
    status,
    take,
    texts_of,
    try_claim,
)
from tests.stores import FakeClock

WIZARD = Agent(
    id=AGENT,
    name="Code Wizard ☃",
    provider="claude",
    model="sonnet",
    directory="/srv/code",
    system_prompt="Be terse.",
    permission=Permission.READ,
    context=Context.SENDER,
)
BAD_IDS = ["", "..", "a/b", "Coder", "a" * 33, "-a", "_a", "a b", "a\n", "ä", "a.b", "a\0"]

texts = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=20)
changes = st.fixed_dictionaries(
    {},
    optional={
        "name": texts,
        "provider": st.sampled_from(["echo", "claude", "codex", "http", "custom:own"]),
        "model": st.sampled_from(["", "sonnet", "zai/glm-4.6", "opus[1m]"]),
        "directory": st.sampled_from(["", "/srv/code", "/tmp"]),
        "system_prompt": texts,
        "permission": st.sampled_from(Permission),
        "context": st.sampled_from(Context),
    },
)


def _find(store: Store, agent: str = AGENT) -> Agent | None:
    with store.read() as tx:
        return find_agent(tx, agent)


def _change(store: Store, **change: object) -> Agent:
    with store.write() as tx:
        return change_agent(tx, AGENT, **change)  # type: ignore[arg-type]


def test_an_agent_is_found_as_it_was_added(store: Store) -> None:
    do(store, add_agent, WIZARD)
    hire(store, "a")
    assert _find(store) == WIZARD
    with store.read() as tx:
        assert list_agents(tx) == [Agent(id="a"), WIZARD]
        with pytest.raises(UnknownAgent):
            get_agent(tx, "nobody")
        with pytest.raises(BadText):
            get_agent(tx, "no\0body")
    assert [event["agent"] for event in events(store, "agent_added")] == [AGENT, "a"]


def test_an_id_that_is_not_of_the_form_is_refused(store: Store) -> None:
    for bad in BAD_IDS:
        refused(store, BadName, add_agent, Agent(id=bad))


def test_no_agent_and_no_team_has_a_name_under_which_bullpen_writes(store: Store) -> None:
    hire(store)
    for name in ("bullpen", "system"):
        refused(store, BadName, add_agent, Agent(id=name))
        refused(store, BadName, add_team, Team(id=name, leader=AGENT, members=(AGENT,)))


def test_an_id_of_the_form_is_taken(store: Store) -> None:
    for good in ("a", "0", "a" * 32, "a-b_c", "9_-"):
        assert hire(store, good) == good
        assert lane_row(store, good)["state"] == "active"


def test_agents_and_teams_share_one_name_space(store: Store) -> None:
    hire(store)
    do(store, add_team, Team(id="dev", leader=AGENT, members=(AGENT,)))
    refused(store, NameTaken, add_agent, Agent(id=AGENT))
    refused(store, NameTaken, add_agent, Agent(id="dev"))


def test_a_name_that_would_break_a_prompt_is_refused(store: Store) -> None:
    hire(store)
    for name in ("two\nlines", "a\tb", "a\u2028b", "\x1b[31m", "a" * 65, "a\0b", "\ud800"):
        with pytest.raises((BadName, BadText)):
            _change(store, name=name)
        with pytest.raises((BadName, BadText)), store.write() as tx:
            add_agent(tx, Agent(id="other", name=name))
    assert _find(store) == Agent(id=AGENT)


def test_what_cannot_work_is_refused(store: Store) -> None:
    hire(store)
    unfit: list[AgentChange]
    unfit = [{"provider": ""}, {"directory": "relative/path"}, {"directory": "~/code"}]
    unfit += [{"model": each} for each in ("--help", "-c", "two words", "a\nb", "m" * 201)]
    for change in unfit:
        with pytest.raises(BadName), store.write() as tx:
            change_agent(tx, AGENT, **change)
        assert _find(store) == Agent(id=AGENT)
        refused(store, BadName, add_agent, replace(Agent(id="other"), **change))


@hypothesis_settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(changes, max_size=5))
def test_a_change_keeps_what_it_does_not_name(store: Store, made: list[AgentChange]) -> None:
    with store.write() as tx:
        if find_agent(tx, AGENT) is not None:
            remove_agent(tx, AGENT)
        add_agent(tx, WIZARD)
    expected = asdict(WIZARD)
    for change in made:
        with store.write() as tx:
            given_back = change_agent(tx, AGENT, **change)
        expected.update(change)
        found = _find(store)
        assert found == given_back
        assert found is not None
        assert {**asdict(found), "resets": 0} == expected


def test_a_change_says_what_it_changed(store: Store) -> None:
    hire(store)
    _change(store, name="x", model="y")
    (event,) = events(store, "agent_changed")
    assert event["data"] == '{"changed":["model","name"]}'


def test_nobody_can_be_changed_or_removed_who_is_not_there(store: Store) -> None:
    refused(store, UnknownAgent, change_agent, "nobody")
    refused(store, UnknownAgent, remove_agent, "nobody")


def test_a_removed_agent_leaves_its_history_and_an_archived_lane(store: Store) -> None:
    hire(store)
    send(store)
    done(store, take(store).token)
    said = rows(store, AGENT_MESSAGES)
    do(store, remove_agent, AGENT)
    assert (rows(store, AGENTS), rows(store, AGENT_MESSAGES)) == ([], said)
    assert lane_row(store)["state"] == "archived"
    with pytest.raises(LaneClosed):
        send(store)
    assert [event["agent"] for event in events(store, "agent_removed")] == [AGENT]


def test_an_agent_with_work_is_not_removed_unless_it_is_forced(store: Store) -> None:
    hire(store)
    send(store)
    refused(store, LaneBusy, remove_agent, AGENT)
    take(store)
    refused(store, LaneBusy, remove_agent, AGENT)
    assert _find(store) is not None


def test_force_cancels_what_waits_and_what_runs(store: Store, clock: FakeClock) -> None:
    hire(store)
    hire(store, "other")
    sent = [send(store, str(number), sender="ada") for number in range(3)]
    running = take(store)
    sent += [send(store, "later", delay=60_000), send(store, "behind")]
    elsewhere = send(store, agent="other")
    with store.write() as tx:
        remove_agent(tx, AGENT, force=True)
    assert {status(store, each) for each in sent} == {"cancelled"}
    assert "removed" in message(store, sent[0])["last_error"]
    assert status(store, elsewhere) == "pending"
    assert lane_row(store)["state"] == "archived"
    with pytest.raises(StaleToken):
        done(store, running.token)
    do(store, confirm_run_ended, running)
    clock.advance(120_000)
    assert texts_of(take(store)) == ["hello"]
    assert try_claim(store) is None


def test_an_agent_that_comes_back_has_its_lane_and_policy_again(store: Store) -> None:
    policy = LanePolicy(ordering=Ordering.PRIORITY, max_depth=3, overflow=Overflow.DROP_OLDEST)
    hire(store, policy=policy)
    do(store, remove_agent, AGENT)
    hire(store, name="Anew")
    row = lane_row(store)
    assert (row["state"], row["ordering"], row["max_depth"]) == ("active", "priority", 3)
    assert _find(store) == Agent(id=AGENT, name="Anew")
    send(store)
    assert texts_of(take(store)) == ["hello"]


def test_an_agent_that_comes_back_with_a_policy_has_that_one(store: Store) -> None:
    hire(store, policy=LanePolicy(max_depth=3))
    do(store, remove_agent, AGENT)
    hire(store, policy=LanePolicy(max_depth=7))
    assert lane_row(store)["max_depth"] == 7
    assert len(rows(store, LANES)) == 1


def test_a_paused_agent_can_be_removed(store: Store) -> None:
    hire(store)
    do(store, pause_lane, AGENT, "lunch")
    do(store, remove_agent, AGENT)
    assert lane_row(store)["state"] == "archived"


def test_the_next_member_leads_and_an_empty_team_is_disbanded(store: Store) -> None:
    for agent in ("a", "b", "c"):
        hire(store, agent)
    do(store, add_team, Team(id="one", leader="b", members=("a", "b", "c"), max_hops=3))
    do(store, add_team, Team(id="two", leader="b", members=("b",)))
    do(store, add_team, Team(id="three", leader="a", members=("a", "c")))
    do(store, remove_agent, "b")
    with store.read() as tx:
        assert find_team(tx, "one") == Team(id="one", leader="a", members=("a", "c"), max_hops=3)
        assert find_team(tx, "two") is None
        three = find_team(tx, "three")
        assert three is not None
        assert three.members == ("a", "c")
    with store.write() as tx:
        change_team(tx, "three", leader="c")
        remove_agent(tx, "a")
    with store.read() as tx:
        found = find_team(tx, "three")
        assert found is not None
        assert (found.leader, found.members) == ("c", ("c",))


def test_the_lane_of_an_http_agent_is_left_to_outside_workers(store: Store) -> None:
    hire(store, provider="http")
    send(store, "one")
    assert try_claim(store) is None
    assert texts_of(take(store, AGENT)) == ["one"]


def test_who_answers_may_change_while_messages_wait(store: Store) -> None:
    hire(store)
    send(store, "one", sender="a")
    send(store, "two", sender="b")
    _change(store, provider="http")
    assert try_claim(store) is None
    with store.write() as tx:
        change_agent(tx, AGENT, provider="claude")
        assert "messages" in tx.topics  # processors look again
    first = take(store)
    assert texts_of(first) == ["one"]
    _change(store, provider="http")
    done(store, first.token)
    assert try_claim(store) is None
    second = take(store, AGENT)
    assert texts_of(second) == ["two"]
    _change(store, provider="echo")
    do(store, release, second.token, "let it go")
    assert texts_of(take(store)) == ["two"]


def test_a_removed_http_agent_that_comes_back_is_not_left_outside(store: Store) -> None:
    hire(store, provider="http")
    do(store, remove_agent, AGENT)
    hire(store)
    send(store)
    assert texts_of(take(store)) == ["hello"]


CHANGES: list[AgentChange] = [
    {"provider": "codex"},
    {"model": "opus"},
    {"directory": "/srv/code"},
]


def test_a_pause_by_a_failure_ends_when_the_agent_is_set_up_otherwise(
    store: Store, subtests: pytest.Subtests
) -> None:
    hire(store, provider="claude")
    for change in CHANGES:
        for kind in (ErrorKind.SETUP, ErrorKind.AUTH, ErrorKind.QUOTA):
            with subtests.test(change=change, kind=kind):
                send(store)
                claimed = take(store)
                do(store, fail, claimed.token, Failure(kind=kind, error="not now"))
                assert lane_row(store)["state"] == "paused"
                _change(store, name=f"Still {kind}")
                assert lane_row(store)["state"] == "paused"
                _change(store, **change)
                assert lane_row(store)["state"] == "active"
                again = take(store)
                assert texts_of(again) == texts_of(claimed)
                done(store, again.token)
                _change(store, provider="claude", model="", directory="")


def test_a_pause_by_a_person_stays_when_the_provider_changes(store: Store) -> None:
    hire(store, provider="claude")
    do(store, pause_lane, AGENT, "on holiday")
    _change(store, provider="codex")
    assert (lane_row(store)["state"], lane_row(store)["reason"]) == ("paused", "on holiday")
