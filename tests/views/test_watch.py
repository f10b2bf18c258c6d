"""The view of the agents shows what is so, as it becomes so, each thing once."""

from __future__ import annotations

import threading

import pytest
from textual.app import App

from bullpen.cli.views import agent
from bullpen.cli.views.agent import AgentDetail, AgentScreen, read_agent_detail
from bullpen.core.company import change_agent
from bullpen.core.message import ErrorKind, Usage
from bullpen.core.queue.lanes import pause_lane
from bullpen.core.queue.manage import hold
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from bullpen.processor.providers.base import Reply
from tests.conformance.verbs import do, failed, hire, lane_row, send, take
from tests.processor.working import Scripted, processing
from tests.views.away import away
from tests.views.looking import SOON, looking, run, watching


def team_of(store: Store, *agents: str) -> None:
    """Agents in a team, the first its leader."""
    for each in agents:
        hire(store, each)
    do(store, add_team, Team(id="dev", name="The Devs", leader=agents[0], members=agents))


@pytest.mark.one_store
def test_a_run_is_seen_from_its_beginning_to_its_end(store: Store, settings: Settings) -> None:
    team_of(store, "coder", "reviewer")
    provider = Scripted()
    usage = Usage(provider="echo", model="m", output_tokens=1500, cost=0.25)
    provider.result = Reply(text="all is mended", usage=usage)

    async def story() -> None:
        async with looking(watching(settings, "dev")) as look:
            await look.sees("#dev The Devs", "coder ★", "○ idle", "processor off")
            send(store, "mend the roof", "coder", sender="ada")
            await look.sees("◌ pending", "ada → @coder", "No processor is running")
            with processing(store, provider):
                await look.sees(
                    "● processing", "← ada: mend the roof", "processor on", "1 processing"
                )
                provider.let_go.set()
                await look.sees("all is mended", "$0.25", "1.5k tokens", "0 processing")
            await look.sees("processor off")
            assert look.count("ada → @coder") == 1
            assert look.count("started a run") == 0  # bookkeeping
            await look.press("a")
            await look.sees("ALL EVENTS", "started a run")
            assert look.count("started a run") == 1
            await look.press("a")
            await look.sees_no_more("started a run")

    run(story)


@pytest.mark.one_store
def test_a_handoff_is_seen_once_with_who_and_whom(store: Store, settings: Settings) -> None:
    team_of(store, "coder", "reviewer")
    provider = Scripted()
    provider.result = Reply(text="[@reviewer: have a look]")
    provider.let_go.set()
    send(store, "go on", "coder", team_id="dev")

    async def story() -> None:
        async with looking(watching(settings), (200, 50)) as look:
            with processing(store, provider):
                await look.sees("@coder → @reviewer")
                await look.until(lambda: len(provider.turns) >= 2, "the reviewer has run")
            await look.sees("processor off")
            assert look.count("@coder → @reviewer  ") == 1

    run(story)


@pytest.mark.one_store
def test_messages_and_answers_are_told_apart_and_now_shows_no_change_of_an_agent(
    store: Store, settings: Settings
) -> None:
    team_of(store, "coder", "reviewer")
    provider = Scripted()
    provider.result = Reply(text="the roof is tight")
    provider.let_go.set()
    send(store, "check the roof", "coder", sender="ada")

    async def story() -> None:
        async with looking(watching(settings)) as look:
            with processing(store, provider):
                await look.sees("answer   @coder")
            do(store, change_agent, "coder", name="The Coder")
            await look.press("a")
            await look.sees("event    @coder")
            assert look.count("message  ada → @coder") == 1
            (row,) = (each for each in look.lines if each.lstrip().startswith("coder "))
            assert row.endswith("the roof is tight")

    run(story)


def test_what_agents_of_no_concern_do_is_not_shown(store: Store, settings: Settings) -> None:
    team_of(store, "coder")
    hire(store, "stranger")

    async def story() -> None:
        async with looking(watching(settings, "dev")) as look:
            await look.sees("#dev The Devs  1 agent")
            send(store, "for another", "stranger")
            send(store, "for one of us", "coder")
            await look.sees("for one of us")
            assert "for another" not in look.text
            assert "stranger" not in look.text

    run(story)


def test_the_queue_is_counted_and_a_pause_says_why(store: Store, settings: Settings) -> None:
    hire(store, "coder")
    for text in ("one", "two", "three"):
        send(store, text, "coder", sender=text)
    failed(store, take(store, "coder").token, ErrorKind.PERMANENT, "no such roof")
    do(store, hold, send(store, "four", "coder"), "until monday")
    do(store, pause_lane, "coder", "on holiday")

    async def story() -> None:
        async with looking(watching(settings)) as look:
            await look.sees("2 pending", "1 held", "1 dead", "■ paused", "on holiday")
            await look.sees("is dead: no such roof", "is held: until monday")

    run(story)


def test_the_chosen_agent_is_paused_and_resumed_by_a_key(store: Store, settings: Settings) -> None:
    for each in ("coder", "reviewer"):
        hire(store, each)

    async def story() -> None:
        async with looking(watching(settings)) as look:
            await look.until(lambda: look.count("○ idle") == 2, "both are listed")
            await look.press("down", "p")
            await look.sees("■ paused")
            assert lane_row(store, "reviewer")["state"] == "paused"
            assert lane_row(store, "coder")["state"] == "active"
            await look.press("r")
            await look.sees_no_more("■ paused")
            assert lane_row(store, "reviewer")["state"] == "active"

    run(story)


@pytest.mark.one_store
def test_enter_shows_the_conversation_and_what_was_said(store: Store, settings: Settings) -> None:
    hire(store, "coder")
    provider = Scripted()
    provider.result = Reply(text="it is mended")
    first = send(store, "mend the roof", "coder", sender="ada")

    async def story() -> None:
        async with looking(watching(settings)) as look:
            with processing(store, provider):
                await look.sees("● processing")
                await look.press("enter")
                await look.sees("@coder", f"CONVERSATION {first}", "ada → @coder [processing]")
                await look.press("question_mark")
                await look.sees("starts no runs until a person resumes it")
                await look.press("escape")
                provider.let_go.set()
                await look.sees("@coder it is mended")
            await look.sees_no_more("CONVERSATION")
            await look.press("escape")
            await look.sees("MESSAGES AND ANSWERS")
            await look.press("q")
            await look.until(lambda: look.app.return_code == 0, "it ended")

    run(story)


def test_without_agents_it_says_what_to_do_and_sees_the_first(
    store: Store, settings: Settings
) -> None:
    async def story() -> None:
        async with looking(watching(settings)) as look:
            await look.sees("There are no agents yet", "bullpen agent add coder")
            await look.press("p", "r", "enter")
            hire(store, "coder")
            await look.sees("AGENT", "○ idle")
            await look.sees_no_more("There are no agents yet")

    run(story)


@pytest.mark.one_store
def test_a_store_that_goes_away_is_told_and_seen_again(store: Store, settings: Settings) -> None:
    hire(store, "coder")
    store.close()

    async def story() -> None:
        async with looking(watching(settings)) as look:
            await look.sees("○ idle")
            with away(settings):
                await look.sees("retrying every second", "○ idle")
                await look.press("p")
                await look.done()
            await look.sees_no_more("retrying every second")
            send(store, "are you there", "coder")
            await look.sees("are you there", "◌ pending")
            assert (
                look.count("@coder  was created") + look.count("@coder              was created")
                <= 1
            )

    run(story)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_the_clock_may_tick_while_the_view_closes(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    team_of(store, "fixer")
    ticks: list[bool] = []

    async def story() -> None:
        view = watching(settings, "dev")
        close_all = view._close_all

        async def close_all_then_tick() -> None:
            await close_all()
            view._tick()
            ticks.append(True)

        monkeypatch.setattr(view, "_close_all", close_all_then_tick)
        async with looking(view) as look:
            await look.sees("fixer")

    run(story)
    assert ticks


@pytest.mark.parametrize("failure", [None, "the store is busy"])
@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_page_may_be_closed_before_its_read_ends(
    store: Store, settings: Settings, failure: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    team_of(store, "fixer")
    closed = threading.Event()
    ends: list[Exception | None] = []

    def read_until_closed(tx: Transaction, agent: str) -> AgentDetail:
        closed.wait(SOON)
        if failure:
            raise RuntimeError(failure)
        return read_agent_detail(tx, agent)

    read_in_thread = AgentScreen._read_in_thread

    def read_to_its_end(page: AgentScreen, *args: App[object]) -> None:
        try:
            read_in_thread(page, *args)
        except Exception as error:
            ends.append(error)
        else:
            ends.append(None)

    monkeypatch.setattr(agent, "read_agent_detail", read_until_closed)
    monkeypatch.setattr(AgentScreen, "_read_in_thread", read_to_its_end)

    async def story() -> None:
        async with looking(watching(settings, "dev")) as look:
            await look.sees("fixer")
            await look.press("enter")
            await look.until(lambda: isinstance(look.app.screen, AgentScreen), "the page opens")
            page = look.app.screen
            await look.press("escape")
            await look.until(lambda: not page.has_parent, "the page is closed")
            closed.set()
            await look.until(lambda: bool(ends), "the read has ended")
            assert set(ends) == {None}

    run(story)


@pytest.mark.parametrize("size", [(80, 24), (200, 50), (40, 10), (20, 4), (1, 1)])
@pytest.mark.parametrize("kind", ["sqlite"])
def test_twenty_agents_fit_into_any_terminal(
    store: Store, settings: Settings, size: tuple[int, int]
) -> None:
    agents = [f"agent-with-a-long-name-{number}" for number in range(20)]
    team_of(store, *agents)
    send(store, "mend the roof of the house at the end of the street", agents[0])

    async def story() -> None:
        async with looking(watching(settings, "dev"), size) as look:
            await look.until(lambda: look.app.query_one("AgentsTable").row_count == 20, "20 rows")  # type: ignore[attr-defined]
            assert all(len(each) <= size[0] for each in look.lines)
            await look.press(*["down"] * 19)
            await look.pilot.resize_terminal(100, 30)
            await look.sees(agents[19])
            await look.press("question_mark", "escape", "enter", "escape")
            await look.sees(agents[19])

    run(story)
