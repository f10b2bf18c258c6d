"""Teams: members who exist, one of whom leads, and what a change keeps."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bullpen.core.company import add_agent, remove_team
from bullpen.core.errors import (
    BadName,
    BadTeam,
    BadText,
    BullpenError,
    NameTaken,
    UnknownAgent,
    UnknownTeam,
)
from bullpen.core.intake import post_in_room
from bullpen.core.models import CHAT_MESSAGES, TEAM_MEMBERS, TEAMS
from bullpen.core.roster.agents import Agent, load_address_book
from bullpen.core.roster.teams import (
    DeliveryMode,
    Team,
    TeamChange,
    add_team,
    change_team,
    find_team,
    get_team,
    list_teams,
    teams_of,
)
from bullpen.core.store.base import Store
from tests.conformance.verbs import do, events, hire, refused, rows

MEMBERS = ("a", "b", "c")
DEV = Team(
    id="dev",
    name="Developers",
    leader="b",
    members=("b", "a"),
    delivery=DeliveryMode.AGGREGATE,
    max_hops=3,
    max_messages=9,
    max_cost=1.5,
)

limits = st.none() | st.integers(0, 1000)
changes = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["", "Crew", "Größe ☃"]),
        "members": st.permutations(MEMBERS).map(tuple),
        "delivery": st.sampled_from(DeliveryMode),
        "max_hops": limits,
        "max_messages": limits,
        "max_cost": st.none() | st.floats(0, 1000),
    },
)


UNFIT: list[tuple[TeamChange, type[BullpenError]]] = [
    ({"members": ()}, BadTeam),
    ({"members": ("a", "b", "a")}, BadTeam),
    ({"members": ("b", "ghost")}, UnknownAgent),
    ({"members": ("b", "a\0")}, BadText),
    ({"members": ("a", "c")}, BadTeam),
    ({"leader": "c"}, BadTeam),
    ({"leader": "ghost"}, BadTeam),
    ({"max_hops": -1}, BadTeam),
    ({"max_cost": float("nan")}, BadTeam),
    ({"max_messages": 10**12}, BadTeam),
    ({"name": "two\nlines"}, BadName),
]


@pytest.fixture
def store(store: Store) -> Store:
    """A store with agents to make teams of."""
    for agent in MEMBERS:
        hire(store, agent)
    return store


def test_a_team_is_found_as_it_was_added(store: Store) -> None:
    do(store, add_team, DEV)
    do(store, add_team, Team(id="all", leader="a", members=MEMBERS))
    with store.read() as tx:
        assert get_team(tx, "dev") == DEV
        assert [team.id for team in list_teams(tx)] == ["all", "dev"]
        assert [team.id for team in teams_of(tx, "a")] == ["all", "dev"]
        assert [team.id for team in teams_of(tx, "c")] == ["all"]
        assert load_address_book(tx).teams == {"all": ("", "a"), "dev": ("Developers", "b")}
        with pytest.raises(UnknownTeam):
            get_team(tx, "nobody")
        with pytest.raises(BadText):
            get_team(tx, "\0")


def test_an_id_that_is_not_of_the_form_is_refused(store: Store) -> None:
    for bad in ("", "..", "a/b", "Dev", "a" * 33, "#dev"):
        refused(store, BadName, add_team, replace(DEV, id=bad))


def test_a_team_cannot_have_the_id_of_an_agent_or_a_team(store: Store) -> None:
    do(store, add_team, DEV)
    refused(store, NameTaken, add_team, DEV)
    refused(store, NameTaken, add_team, replace(DEV, id="a"))


def test_a_team_that_cannot_be_is_refused(store: Store) -> None:
    for change, kind in UNFIT:
        refused(store, kind, add_team, replace(DEV, **change))


def test_a_team_cannot_become_what_cannot_be(store: Store) -> None:
    do(store, add_team, DEV)
    for change, kind in UNFIT:
        refused(store, kind, partial(change_team, **change), "dev")


@hypothesis_settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(changes, max_size=5))
def test_a_change_keeps_what_it_does_not_name(store: Store, made: list[TeamChange]) -> None:
    with store.write() as tx:
        if find_team(tx, "dev") is not None:
            remove_team(tx, "dev")
        add_team(tx, DEV)
    expected = asdict(DEV)
    for change in made:
        with store.write() as tx:
            given_back = change_team(tx, "dev", **change)
        expected.update(change)
        with store.read() as tx:
            assert get_team(tx, "dev") == given_back
        assert asdict(given_back) == expected


def test_a_limit_can_be_taken_off_again(store: Store) -> None:
    do(store, add_team, DEV)
    with store.write() as tx:
        assert change_team(tx, "dev", max_hops=None).max_hops is None
        assert change_team(tx, "dev", max_hops=0).max_hops == 0


def test_a_disbanded_team_leaves_its_agents_and_its_rooms_history(store: Store) -> None:
    do(store, add_team, DEV)
    with store.write() as tx:
        post_in_room(tx, "dev", "hello", "ada")
    do(store, remove_team, "dev")
    assert (rows(store, TEAMS), rows(store, TEAM_MEMBERS)) == ([], [])
    assert [row["message"] for row in rows(store, CHAT_MESSAGES)] == ["hello"]
    with store.read() as tx:
        assert sorted(load_address_book(tx).agents) == list(MEMBERS)
    refused(store, UnknownTeam, remove_team, "dev")
    kinds = [row["type"] for row in events(store) if row["type"].startswith("team_")]
    assert kinds == ["team_added", "team_removed"]


def test_the_id_of_a_disbanded_team_is_free_again(store: Store) -> None:
    do(store, add_team, DEV)
    do(store, remove_team, "dev")
    do(store, add_agent, Agent(id="dev"))
