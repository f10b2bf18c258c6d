"""A team's room, live: what is said there, and a line to say something."""

from __future__ import annotations

from typing import ClassVar
from zoneinfo import ZoneInfo

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Footer, Static

from bullpen.cli.output import read_transaction, write_transaction
from bullpen.cli.views.composer import Composer
from bullpen.cli.views.database import error_text, locate_store
from bullpen.cli.views.feed import Feed
from bullpen.cli.views.live import Gone, LiveView, Lost
from bullpen.cli.views.posts import OWNER, Posts
from bullpen.cli.views.room_looks import INITIAL_POSTS, RoomReader, RoomUpdate
from bullpen.cli.views.shown import single_line
from bullpen.core.clock import SystemClock
from bullpen.core.history.rooms import Post, posts_before
from bullpen.core.queue.room import post_in_room
from bullpen.core.settings import Settings


class Told(Message):
    """There is news."""

    def __init__(self, news: RoomUpdate) -> None:
        super().__init__()
        self.news = news


class Older(Message):
    """Older posts were read."""

    def __init__(self, posts: list[Post]) -> None:
        super().__init__()
        self.posts = posts


class RoomView(LiveView):
    """The room of one team."""

    CSS = """
    #heading { height: auto; max-height: 2; padding: 0 1; }
    #below { height: 1; padding: 0 1; display: none; }
    #below.-shown { display: block; }
    .-low Footer { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "quit", "Quit", priority=True, key_display="esc"),
        Binding("pageup", "older", "Older", priority=True, key_display="PgUp"),
        Binding("pagedown", "newer", "Newer", priority=True, key_display="PgDn"),
    ]

    def __init__(self, settings: Settings, team: str, zone: ZoneInfo) -> None:
        super().__init__(settings)
        self.team = team
        self.zone = zone
        self._news: RoomUpdate | None = None
        self._unseen = 0
        self._loading = False
        self._feed = Feed(
            settings,
            RoomReader(team),
            lambda news: self.post_message(Told(news)),
            lambda why: self.post_message(Lost(why)),
        )

    def compose(self) -> ComposeResult:
        """Who is in the room, what was said, where to write, the keys."""
        yield Static(Text(f"#{self.team}", style="bold"), id="heading")
        yield Gone()
        yield Posts(self.zone)
        yield Static(id="below")
        yield Composer(f"Say something in #{self.team}")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to follow."""
        super().on_mount()
        self.query_one(Composer).focus()
        self._feed.start()

    def on_unmount(self) -> None:
        """Let go of the store."""
        self._feed.stop()

    async def on_told(self, told: Told) -> None:
        """Show the news."""
        news = self._news = told.news
        posts = self.query_one(Posts)
        self.query_one(Gone).say("")
        self.query_one("#heading", Static).update(_heading(news))
        if news.whole:
            posts.complete = True
        count = await posts.add(news.posts, news.team.members, news.at)
        self._count(0 if posts.follows else self._unseen + count)

    def on_lost(self, lost: Lost) -> None:
        """Say that what is shown is old."""
        self.query_one(Gone).say(lost.why)

    def on_posts_followed(self) -> None:
        """What was new has been seen."""
        self._count(0)

    def on_composer_posted(self, posted: Composer.Posted) -> None:
        """Post it."""
        self.query_one(Posts).scroll_to_newest()
        self._count(0)
        self.do(lambda: self._post(posted.text))

    def action_older(self) -> None:
        """A page up; from the first post on, older ones."""
        posts = self.query_one(Posts)
        if posts.scroll_y > 0:
            posts.scroll_page_up(animate=False)
        elif posts.oldest is not None and not posts.complete and not self._loading:
            self._loading = True
            oldest = posts.oldest
            self.run_worker(lambda: self._load(oldest), thread=True)

    def action_newer(self) -> None:
        """A page down."""
        self.query_one(Posts).scroll_page_down(animate=False)

    def _post(self, text: str) -> None:
        try:
            locate_store(self.settings)
            with write_transaction(self.settings) as tx:
                post_in_room(tx, self.team, text, OWNER)
        except Exception as error:  # shown where it happened, and the text given back
            self.call_from_thread(self._not_posted, text, error_text(error))
        else:
            self._feed.wake()

    def _not_posted(self, text: str, why: str) -> None:
        self.query_one(Composer).give_back(text)
        self.refuse(f"This was not posted. {why}")

    def _load(self, before: int) -> None:
        try:
            locate_store(self.settings)
            with read_transaction(self.settings) as tx:
                found = posts_before(tx, self.team, before, INITIAL_POSTS)
        except Exception as error:  # shown where it happened
            self.call_from_thread(self.refuse, error_text(error))
            self._loading = False
        else:
            self.post_message(Older(found))

    async def on_older(self, older: Older) -> None:
        """Show what was read."""
        posts = self.query_one(Posts)
        posts.complete = len(older.posts) < INITIAL_POSTS
        members = () if self._news is None else self._news.team.members
        await posts.add_older(older.posts, members, SystemClock().now(), self._loaded)
        posts.mark()

    def _loaded(self) -> None:
        self._loading = False

    def _count(self, unseen: int) -> None:
        """Say how many new posts are below what is shown."""
        self._unseen = unseen
        below = self.query_one("#below", Static)
        below.set_class(bool(unseen), "-shown")
        words = "1 new post" if unseen == 1 else f"{unseen} new posts"
        below.update(Text(f"↓ {words}: PageDown", style="bold yellow"))


def _heading(news: RoomUpdate) -> Text:
    team = news.team
    found = Text.assemble(
        (f"#{team.id}", "bold"), f" {single_line(team.name)}" if team.name else "", "  "
    )
    for each in team.members:
        works = each in news.working
        found.append(f"{'●' if works else '○'} ", "green" if works else "dim")
        found.append(f"@{each}  ", "" if works else "dim")
    return found
