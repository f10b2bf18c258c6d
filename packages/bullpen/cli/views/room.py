"""bullpen room: a team's room, live, with an input line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar
from zoneinfo import ZoneInfo

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Footer, Static, TextArea

from bullpen.cli.command import read_transaction, write_transaction
from bullpen.cli.output import format_count
from bullpen.cli.views.app import Gone, LiveView, Lost, single_line
from bullpen.cli.views.feed import Feed, error_text, locate_store
from bullpen.cli.views.posts import OWNER, Posts
from bullpen.core.clock import SECOND, SystemClock
from bullpen.core.events.company import RoomPosted
from bullpen.core.events.conversation import ChainStepDone
from bullpen.core.events.log import EventRecord
from bullpen.core.events.tail import EventTail
from bullpen.core.inspect.event_details import event_details
from bullpen.core.inspect.lanes import list_lanes
from bullpen.core.inspect.rooms import Post, newest_posts, posts_before, posts_since
from bullpen.core.intake import post_in_room
from bullpen.core.message import ROOM
from bullpen.core.roster.teams import Team, get_team
from bullpen.core.routing.tags import Tag, TagKind, parse_tags, text_outside_tags
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.paging import MAX_ROW_ID
from bullpen.core.store.transaction import Transaction

INITIAL_POSTS = 50
"""How many posts are shown first, and how many older ones each time."""
PAGE_POSTS = 500
LOOK_SECONDS = 5


class Composer(TextArea):
    """The input: Enter posts, pasted text keeps its lines."""

    DEFAULT_CSS = """
    Composer {
        height: auto; max-height: 7; padding: 0 1; background: ansi_default;
        border: none; border-top: solid ansi_cyan;
    }
    Composer:focus { border: none; border-top: solid ansi_cyan; }
    Composer .text-area--cursor { text-style: reverse; }
    Composer .text-area--cursor-line { background: ansi_default; }
    Composer .text-area--placeholder { text-style: dim; color: ansi_default; }
    Composer .text-area--selection { text-style: reverse; background: ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "post", "Post", key_display="⏎"),
        Binding("ctrl+j,shift+enter,alt+enter", "new_line", "New line", key_display="^J"),
    ]

    class Posted(Message):
        """A text to post."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, placeholder: str) -> None:
        super().__init__(
            soft_wrap=True,
            show_line_numbers=False,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder=placeholder,
        )
        self.cursor_blink = False

    def action_post(self) -> None:
        """Post the text, unless it is blank."""
        if self.text.strip():
            self.post_message(self.Posted(self.text))
            self.clear()

    def action_new_line(self) -> None:
        """Insert a line break."""
        self.insert("\n")

    def restore(self, text: str) -> None:
        """Put a text back that could not be posted."""
        written = self.text
        self.text = f"{text}\n{written}" if written else text
        self.move_cursor(self.document.end)

    async def _on_key(self, event: events.Key) -> None:
        # A priority binding would overtake the letters typed before it.
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self.action_post()

    async def _on_paste(self, event: events.Paste) -> None:
        # Some terminals send a carriage return for each line end. Textual calls the handler of
        # TextArea after this one.
        event.text = event.text.replace("\r\n", "\n").replace("\r", "\n")


@dataclass(frozen=True, slots=True)
class RoomUpdate:
    """The present state of the room, and its new posts; some may be repeated."""

    at: int
    team: Team
    working: tuple[str, ...]
    """The members that have a run now."""
    posts: tuple[Post, ...]
    whole: bool
    """Whether these are all posts of the room."""
    private: dict[str, list[str]] = field(default_factory=dict)
    """The conversations of new private answers, with the agents that answered."""


@dataclass(slots=True)
class RoomReader:
    """Reads a team's room; after a loss of the store it continues with the missed posts."""

    team: str
    _entered: bool = False
    _last: int = 0
    """The highest id of the posts that were yielded."""

    def __call__(self, store: Store) -> Iterator[RoomUpdate | None]:
        """Yield the last posts, or those since the store was lost; then each new one."""
        tail = EventTail.from_now(store)
        with store.read() as tx:
            posts = (
                self._missed(tx)
                if self._entered
                else newest_posts(tx, self.team, INITIAL_POSTS)[::-1]
            )
            whole = not self._entered and len(posts) < INITIAL_POSTS
            update = self._update(tx, posts, whole=whole)
        self._entered = True
        yield update
        while True:
            events = tail.read(PAGE_POSTS)
            posted = (each.event for each in events)
            numbers = [
                each.post
                for each in posted
                if isinstance(each, RoomPosted) and each.team == self.team
            ]
            old = store.clock.now() - update.at >= LOOK_SECONDS * SECOND
            if not (events or old):
                yield None
                continue
            with store.read() as tx:
                update = self._update(tx, self._posted(tx, numbers), whole=False)
                private = self._private_answers(tx, events)
            yield replace(update, private=private)

    def _update(self, tx: Transaction, posts: Sequence[Post], *, whole: bool) -> RoomUpdate:
        team = get_team(tx, self.team)
        self._last = max([self._last, *(post.id for post in posts)])
        busy = {each.agent for each in list_lanes(tx) if each.processing}
        working = tuple(each for each in team.members if each in busy)
        return RoomUpdate(tx.now, team, working, tuple(posts), whole)

    def _private_answers(
        self, tx: Transaction, events: Sequence[EventRecord]
    ) -> dict[str, list[str]]:
        """The agents that answered a post of this room without a post of their own."""
        found: dict[str, list[str]] = {}
        ends = [each for each in events if isinstance(each.event, ChainStepDone)]
        for record, details in zip(ends, event_details(tx, ends), strict=True):
            origin = details.origin
            if origin is None or (origin.channel, origin.team_id) != (ROOM, self.team):
                continue
            answer = parse_tags(details.text or "")
            posted = any(isinstance(each, Tag) and each.kind is TagKind.ROOM for each in answer)
            if record.agent and record.conversation_id and text_outside_tags(answer) and not posted:
                found.setdefault(record.conversation_id, []).append(record.agent)
        return found

    def _missed(self, tx: Transaction) -> list[Post]:
        # On PostgreSQL a lower id may commit after a higher one: some posts are repeated.
        return _between(tx, self.team, max(0, self._last - INITIAL_POSTS), MAX_ROW_ID)

    def _posted(self, tx: Transaction, numbers: Sequence[int]) -> list[Post]:
        """The posts of these ids, whose events are visible."""
        return _between(tx, self.team, min(numbers) - 1, max(numbers)) if numbers else []


def _between(tx: Transaction, team: str, since: int, upto: int) -> list[Post]:
    """All posts after one id and up to the other."""
    found: list[Post] = []
    while True:
        page = posts_since(tx, team, since_id=since, since=0, upto=upto, limit=PAGE_POSTS)
        found += page
        if len(page) < PAGE_POSTS:
            return found
        since = page[-1].id


class Updated(Message):
    """The room has changed."""

    def __init__(self, update: RoomUpdate) -> None:
        super().__init__()
        self.update = update


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
    #private { height: auto; max-height: 3; padding: 0 1; display: none; }
    #private.-shown { display: block; }
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
        self._latest: RoomUpdate | None = None
        self._unseen = 0
        self._loading = False
        self._private: dict[str, list[str]] = {}
        self._feed = Feed(
            settings,
            RoomReader(team),
            lambda update: self.post_message(Updated(update)),
            lambda why: self.post_message(Lost(why)),
        )

    def compose(self) -> ComposeResult:
        """Heading, posts, input and keys."""
        yield Static(Text(f"#{self.team}", style="bold"), id="heading")
        yield Gone()
        yield Posts(self.zone)
        yield Static(id="below")
        yield Static(id="private")
        yield Composer(f"Post to #{self.team}")
        yield Footer()

    def on_mount(self) -> None:
        """Start the feed."""
        super().on_mount()
        self.query_one(Composer).focus()
        self._feed.start()

    def on_unmount(self) -> None:
        """Stop the feed."""
        self._feed.stop()

    async def on_updated(self, message: Updated) -> None:
        """Show the update."""
        if not self.query(Posts):
            return  # the view is closing: its widgets are gone
        update = self._latest = message.update
        posts = self.query_one(Posts)
        self.query_one(Gone).say("")
        self.query_one("#heading", Static).update(_heading(update))
        if update.whole:
            posts.complete = True
        count = await posts.add(update.posts, update.team.members, update.at)
        self._count(0 if posts.follows else self._unseen + count)
        self._show_private(update.private)

    def on_lost(self, lost: Lost) -> None:
        """Show that the view is out of date."""
        self.query_one(Gone).say(lost.why)

    def on_posts_followed(self) -> None:
        """The new posts were seen."""
        self._count(0)

    def on_composer_posted(self, posted: Composer.Posted) -> None:
        """Post the text."""
        self.query_one(Posts).scroll_to_newest()
        self._count(0)
        self._private.clear()
        self._show_private({})
        self.do(lambda: self._post(posted.text))

    def action_older(self) -> None:
        """Scroll a page up; at the first post, load older ones."""
        posts = self.query_one(Posts)
        if posts.scroll_y > 0:
            posts.scroll_page_up(animate=False)
        elif posts.oldest is not None and not posts.complete and not self._loading:
            self._loading = True
            oldest = posts.oldest
            self.run_worker(lambda: self._load(oldest), thread=True)

    def action_newer(self) -> None:
        """Scroll a page down."""
        self.query_one(Posts).scroll_page_down(animate=False)

    def _post(self, text: str) -> None:
        try:
            locate_store(self.settings)
            with write_transaction(self.settings) as tx:
                post_in_room(tx, self.team, text, OWNER)
        except Exception as error:  # shown in the view, and the text is restored
            self.call_from_thread(self._not_posted, text, error_text(error))
        else:
            self._feed.wake()

    def _not_posted(self, text: str, why: str) -> None:
        self.query_one(Composer).restore(text)
        self.refuse(f"Not posted: {why}")

    def _load(self, before: int) -> None:
        try:
            locate_store(self.settings)
            with read_transaction(self.settings) as tx:
                found = posts_before(tx, self.team, before, INITIAL_POSTS)
        except Exception as error:  # shown in the view
            self.call_from_thread(self.refuse, error_text(error))
            self._loading = False
        else:
            self.post_message(Older(found))

    async def on_older(self, older: Older) -> None:
        """Show the older posts."""
        posts = self.query_one(Posts)
        posts.complete = len(older.posts) < INITIAL_POSTS
        members = () if self._latest is None else self._latest.team.members
        await posts.add_older(older.posts, members, SystemClock().now(), self._loaded)
        posts.mark()

    def _loaded(self) -> None:
        self._loading = False

    def _count(self, unseen: int) -> None:
        """Show how many new posts are below."""
        self._unseen = unseen
        below = self.query_one("#below", Static)
        below.set_class(bool(unseen), "-shown")
        words = format_count(unseen, "new post")
        below.update(Text(f"↓ {words}: PageDown", style="bold yellow"))

    def _show_private(self, answers: dict[str, list[str]]) -> None:
        """Show the agents that answered privately since the last post of this person."""
        for conversation, agents in answers.items():
            known = self._private.setdefault(conversation, [])
            known += [each for each in agents if each not in known]
        line = self.query_one("#private", Static)
        line.set_class(bool(self._private), "-shown")
        line.update(Text("\n").join(_private_line(*each) for each in self._private.items()))


def _private_line(conversation: str, agents: Sequence[str]) -> Text:
    names = ", ".join(f"@{each}" for each in agents)
    return Text(f"{names} answered privately: bullpen trace {conversation}", style="dim")


def _heading(update: RoomUpdate) -> Text:
    team = update.team
    found = Text.assemble(
        (f"#{team.id}", "bold"), f" {single_line(team.name)}" if team.name else "", "  "
    )
    for each in team.members:
        works = each in update.working
        found.append(f"{'●' if works else '○'} ", "green" if works else "dim")
        found.append(f"@{each}  ", "" if works else "dim")
    return found
