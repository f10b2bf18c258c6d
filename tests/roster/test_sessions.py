"""Sessions: which runs share one, and when one is forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bullpen.core.company import change_agent, remove_agent, reset_agent
from bullpen.core.message import ReplyTo
from bullpen.core.models import SESSIONS
from bullpen.core.roster.agents import Agent, Context, get_agent
from bullpen.core.roster.sessions import (
    Session,
    chat_key,
    find_session,
    save_session,
    session_key,
)
from bullpen.core.store.base import Store
from tests.answers.beside import beside
from tests.conformance.verbs import AGENT, do, events, hire, rows
from tests.outbox.outgoing import asked

FIRST = Session(id="s-1", input_tokens=10, output_tokens=20, cost=0.5, told="hash")
SECOND = Session(id="s-2")


def _agent(store: Store) -> Agent:
    with store.read() as tx:
        return get_agent(tx, AGENT)


def _keep(store: Store, session: Session | None, agent: Agent | None = None, key: str = "") -> None:
    with store.write() as tx:
        save_session(tx, agent or get_agent(tx, AGENT), key, session)


def _found(store: Store, key: str = "") -> Session | None:
    with store.read() as tx:
        return find_session(tx, get_agent(tx, AGENT), key)


@pytest.fixture
def store(store: Store) -> Store:
    """A store with an agent behind claude."""
    hire(store, provider="claude")
    return store


def test_a_session_is_found_as_it_was_kept(store: Store) -> None:
    assert _found(store) is None
    _keep(store, FIRST)
    assert _found(store) == FIRST
    _keep(store, SECOND)
    assert _found(store) == SECOND
    (row,) = rows(store, SESSIONS)
    assert row["runs"] == 2


def test_a_session_that_was_lost_is_forgotten(store: Store) -> None:
    _keep(store, FIRST)
    _keep(store, None)
    assert rows(store, SESSIONS) == []


def test_each_context_has_a_session_of_its_own(store: Store) -> None:
    _keep(store, FIRST, key="one")
    _keep(store, SECOND, key="two")
    assert (_found(store, "one"), _found(store, "two"), _found(store)) == (FIRST, SECOND, None)


ADA = replace(asked("m1"), sender="ada", conversation_id="c1")
SAME_PERSON = replace(ADA, sender="Ada L.", conversation_id="c2")
ELSEWHERE = replace(ADA, channel="telegram")
NAMED_SO = replace(ADA, sender="U1", sender_id=None)
LIKE_A_NAME = replace(ADA, sender="x", sender_id="@ada")
BY_NAME = replace(ADA, sender_id=None)
IN_THREAD = replace(ADA, reply_to=str(ReplyTo("C1", "1", "9")))


def test_what_shares_a_session_is_the_agents_choice() -> None:
    for context, one, other, same in (
        (Context.AGENT, ADA, ELSEWHERE, True),
        (Context.SENDER, ADA, SAME_PERSON, True),
        (Context.SENDER, ADA, ELSEWHERE, False),
        (Context.SENDER, ADA, NAMED_SO, False),
        (Context.SENDER, LIKE_A_NAME, BY_NAME, False),
        (Context.CHAT, ADA, SAME_PERSON, True),
        (Context.CHAT, ADA, ELSEWHERE, False),
        (Context.CHAT, IN_THREAD, replace(IN_THREAD, sender_id="U2", sender="bob"), True),
        (Context.CHAT, IN_THREAD, replace(IN_THREAD, reply_to=str(ReplyTo("C1", "2", "9"))), False),
        (Context.CHAT, IN_THREAD, replace(IN_THREAD, reply_to=str(ReplyTo("C1", "1", "8"))), True),
        (Context.CONVERSATION, ADA, SAME_PERSON, False),
        (Context.CONVERSATION, ADA, ELSEWHERE, True),
    ):
        agent = Agent(id=AGENT, context=context)
        assert (session_key(agent, one) == session_key(agent, other)) is same
    per_chat = Agent(id=AGENT, context=Context.CHAT)
    assert session_key(per_chat, IN_THREAD) == chat_key(IN_THREAD.channel, "C1", "1")


def test_the_session_of_another_provider_is_none(store: Store) -> None:
    _keep(store, FIRST)
    agent = replace(_agent(store), provider="codex")
    with store.read() as tx:
        assert find_session(tx, agent, "") is None


@pytest.mark.parametrize("change", [{"provider": "codex"}, {"directory": "/srv"}])
def test_a_change_of_provider_or_directory_forgets_them(
    store: Store, change: dict[str, str]
) -> None:
    _keep(store, FIRST)
    began = _agent(store)
    with store.write() as tx:
        change_agent(tx, AGENT, **change)  # type: ignore[arg-type]
    assert rows(store, SESSIONS) == []
    # A run that began before the change keeps none either.
    _keep(store, FIRST, began)
    assert rows(store, SESSIONS) == []
    with store.write() as tx:
        change_agent(tx, AGENT, provider="claude", directory="")
    assert _found(store) is None


def test_a_change_of_anything_else_keeps_them(store: Store) -> None:
    _keep(store, FIRST)
    began = _agent(store)
    with store.write() as tx:
        change_agent(tx, AGENT, model="opus", name="x", provider="claude")
    assert _found(store) == FIRST
    _keep(store, SECOND, began)
    assert _found(store) == SECOND


def test_a_reset_forgets_all_sessions_of_that_agent_alone(store: Store) -> None:
    hire(store, "other", provider="claude")
    _keep(store, FIRST, key="one")
    _keep(store, SECOND, key="two")
    with store.write() as tx:
        save_session(tx, get_agent(tx, "other"), "", FIRST)
    do(store, reset_agent, AGENT)
    assert [row["agent"] for row in rows(store, SESSIONS)] == ["other"]
    assert [row["agent"] for row in events(store, "session_reset")] == [AGENT]


def test_a_run_that_began_before_a_reset_keeps_no_session(store: Store) -> None:
    began = _agent(store)
    do(store, reset_agent, AGENT)
    _keep(store, FIRST, began)
    assert rows(store, SESSIONS) == []
    _keep(store, SECOND)
    assert _found(store) == SECOND


def test_a_removed_agent_keeps_none(store: Store) -> None:
    _keep(store, FIRST)
    began = _agent(store)
    do(store, remove_agent, AGENT)
    assert rows(store, SESSIONS) == []
    _keep(store, FIRST, began)
    assert rows(store, SESSIONS) == []


def test_a_reset_beside_a_run_that_ends_leaves_no_session(store: Store) -> None:
    """Whichever of the two is first: the reset waits for the run, or the run sees the reset."""
    began = _agent(store)
    with store.write() as tx:
        save_session(tx, began, "", FIRST)
        reset = beside(store, tx, do, store, reset_agent, AGENT)
    reset.join(20)
    assert rows(store, SESSIONS) == []


def test_a_reset_beside_a_change_undoes_nothing_of_it(store: Store) -> None:
    with store.write() as tx:
        change_agent(tx, AGENT, model="opus")
        reset = beside(store, tx, do, store, reset_agent, AGENT)
    reset.join(20)
    assert (_agent(store).model, _agent(store).resets) == ("opus", 1)
