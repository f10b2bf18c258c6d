"""A room in the terminal: each post once and in order, and what is typed is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual import events

from bullpen.cli.views import posts
from bullpen.cli.views.room import Updated
from bullpen.core.inspect.rooms import newest_posts
from bullpen.core.intake import post_in_room
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.processor.providers.base import Reply
from tests.conformance.verbs import do, hire
from tests.processor.working import Scripted, processing
from tests.views.away import away
from tests.views.looking import Look, looking, run, sitting_in


@pytest.fixture(autouse=True)
def team(store: Store) -> None:
    """Two agents with a room."""
    for each in ("coder", "reviewer"):
        hire(store, each)
    do(store, add_team, Team(id="dev", leader="coder", members=("coder", "reviewer")))


def say(store: Store, *texts: str, sender: str = "ada") -> None:
    """Post these, each by itself."""
    for each in texts:
        do(store, post_in_room, "dev", each, sender)


def said(store: Store) -> list[str]:
    """All posts, the oldest first."""
    with store.read() as tx:
        return [each.message for each in newest_posts(tx, "dev", 1000)[::-1]]


def shown(look: Look) -> list[str]:
    """The posts on the view, the first at the top, also those that are scrolled away."""
    return [each.post.message for each in look.app.query("PostLine")]  # type: ignore[attr-defined]


@pytest.mark.one_store
def test_posts_are_shown_once_and_in_order(store: Store, settings: Settings) -> None:
    say(store, "first", "second")

    async def story() -> None:
        async with looking(sitting_in(settings)) as look:
            await look.sees("Beginning of the room", "first", "second", "ada")
            say(store, "third")
            await look.sees("third")
            for number in range(30):
                say(store, f"more {number}")
            await look.sees("more 29")
            assert shown(look) == said(store)

    run(story)


@pytest.mark.parametrize("text", ["quit? no", "über 漢字 né", "@coder [@reviewer: x] [#dev]", "/q"])
@pytest.mark.one_store
def test_any_text_can_be_typed_and_is_said_once(
    store: Store, settings: Settings, text: str
) -> None:
    async def story() -> None:
        async with looking(sitting_in(settings)) as look:
            await look.sees("No posts yet")
            await look.types(text)
            await look.press("enter")
            await look.sees(text, "you")
            assert said(store) == [text]
            await look.press("enter", "space", "enter")
            say(store, "and then")
            await look.sees("and then")
            assert shown(look) == [text, "and then"]

    run(story)


def test_what_is_pasted_keeps_its_lines(store: Store, settings: Settings) -> None:
    async def story() -> None:
        async with looking(sitting_in(settings)) as look:
            await look.sees("No posts yet")
            look.app.post_message(events.Paste("one\r\ntwo\rq three"))
            await look.sees("q three")
            await look.press("enter")
            await look.until(lambda: said(store) == ["one\ntwo\nq three"], "it is posted")
            await look.sees("q three", "you")

    run(story)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_what_is_said_while_the_store_is_busy_is_posted_in_its_order(
    store: Store, settings: Settings
) -> None:
    texts = [f"line {number}" for number in range(6)]
    patient = replace(settings, busy_seconds=600)

    async def story() -> None:
        async with looking(sitting_in(patient)) as look:
            await look.sees("No posts yet")
            with store.write():
                for each in texts:
                    await look.types(each)
                    await look.press("enter")
            await look.until(lambda: len(said(store)) == len(texts), "all of it is posted")
            assert said(store) == texts

    run(story)


@pytest.mark.one_store
def test_what_members_say_is_seen_and_that_they_work(store: Store, settings: Settings) -> None:
    provider = Scripted()
    provider.result = Reply(text="[#dev: I am on it, @reviewer]")

    async def story() -> None:
        async with looking(sitting_in(settings)) as look:
            await look.sees("○ @coder  ○ @reviewer")
            with processing(store, provider):
                await look.types("who does it?")
                await look.press("enter")
                await look.sees("● @coder")
                provider.let_go.set()
                await look.sees("I am on it, @reviewer")
                await look.sees("@coder ")

    run(story)


@pytest.mark.one_store
def test_a_room_says_who_answered_privately(store: Store, settings: Settings) -> None:
    provider = Scripted()
    provider.result = Reply(text="I have read it")
    provider.let_go.set()

    async def story() -> None:
        async with looking(sitting_in(settings)) as look:
            await look.sees("○ @coder  ○ @reviewer")
            with processing(store, provider):
                await look.types("who does it?")
                await look.press("enter")
                await look.sees("answered privately: bullpen trace chatroom_")
                await look.until(
                    lambda: all(
                        any(f"@{each}" in line and "privately" in line for line in look.lines)
                        for each in ("coder", "reviewer")
                    ),
                    "both have answered",
                )
                await look.types("thanks")
                provider.result = Reply(text="[#dev: You are welcome]")
                await look.press("enter")
                await look.sees_no_more("answered privately")
                await look.sees("You are welcome")

    run(story)


@pytest.mark.one_store
def test_older_posts_come_with_page_up_and_new_ones_do_not_scroll_them_away(
    store: Store, settings: Settings
) -> None:
    say(store, *(f"post {number}." for number in range(120)))

    async def story() -> None:
        async with looking(sitting_in(settings)) as look:
            await look.sees("post 119.")
            assert shown(look) == said(store)[-50:]
            while len(shown(look)) < 120:
                await look.press("pageup")
            assert shown(look) == said(store)
            # What was on the screen stays there: the older ones are above it.
            await look.until(lambda: look.app.query_one(posts.Posts).scroll_y > 0, "it is kept")
            await look.sees_no_more("post 0.")
            while "post 0." not in look.text:
                await look.press("pageup")
            await look.sees("Beginning of the room", "post 0.")
            say(store, "brand new", "and newer")
            await look.sees("2 new posts", "post 0.")
            while "and newer" not in look.text:
                await look.press("pagedown")
            await look.sees_no_more("new posts")

    run(story)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_long_evening_is_not_kept_on_the_screen_but_can_be_read_again(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posts, "MAX_POSTS", 60)

    async def story() -> None:
        async with looking(sitting_in(settings)) as look:
            for start in range(0, 120, 20):
                say(store, *(f"post {number}." for number in range(start, start + 20)))
                await look.sees(f"post {start + 19}.")
            await look.until(lambda: len(shown(look)) == 60, "the oldest are gone")
            assert shown(look) == said(store)[-60:]
            while "post 0." not in look.text:
                await look.press("pageup")
            assert shown(look) == said(store)

    run(story)


@pytest.mark.one_store
def test_what_could_not_be_posted_is_given_back(store: Store, settings: Settings) -> None:
    say(store, "said before")
    store.close()

    async def story() -> None:
        async with looking(sitting_in(settings)) as look:
            await look.sees("said before")
            with away(settings) as elsewhere:
                await look.sees("retrying every second")
                await look.types("is anybody there")
                await look.press("enter")
                await look.sees("Not posted", "is anybody there")
                other = open_store(elsewhere)
                say(other, "said meanwhile")
                other.close()
            await look.sees("said meanwhile")
            await look.sees_no_more("retrying every second")
            await look.press("enter")
            await look.until(
                lambda: said(store) == ["said before", "said meanwhile", "is anybody there"],
                "it is posted",
            )
            await look.until(lambda: shown(look) == said(store), "it is shown")

    run(story)


def test_what_an_agent_writes_reaches_no_terminal_as_an_order(
    store: Store, settings: Settings
) -> None:
    say(store, "\x1b[2J\x1b]0;title\x07red \x1b[31malert\x9b31m \u202eevil[bold]x[/bold]")

    async def story() -> None:
        async with looking(sitting_in(settings)) as look:
            await look.sees("red", "alert", "[bold]x[/bold]")
            assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(look.text)

    run(story)


@pytest.mark.parametrize("size", [(80, 24), (200, 50), (40, 10), (20, 4), (1, 1)])
@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_room_fits_into_any_terminal(
    store: Store, settings: Settings, size: tuple[int, int]
) -> None:
    say(store, *(f"{number} {'a long story ' * 20}" for number in range(20)))

    async def story() -> None:
        async with looking(sitting_in(settings), size) as look:
            await look.until(lambda: len(shown(look)) == 20, "all posts are there")
            await look.types("hello")
            await look.pilot.resize_terminal(100, 30)
            await look.sees("19 a long story", "hello")

    run(story)


@pytest.mark.one_store
def test_escape_leaves_also_with_something_written(store: Store, settings: Settings) -> None:
    async def story() -> None:
        async with looking(sitting_in(settings)) as look:
            await look.sees("No posts yet")
            await look.types("a draft")
            await look.press("escape")
            await look.until(lambda: look.app.return_code == 0, "it ended")
            assert said(store) == []

    run(story)


def test_an_update_that_comes_while_the_room_closes_is_passed_over(
    store: Store, settings: Settings
) -> None:
    async def story() -> None:
        view = sitting_in(settings)
        async with looking(view) as look:
            await look.sees("○ @coder  ○ @reviewer")
            assert view._latest is not None
            await view.query_one(posts.Posts).remove()
            await view.on_updated(Updated(view._latest))

    run(story)
