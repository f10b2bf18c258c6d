"""The posts of a room, the newest at the bottom."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from zoneinfo import ZoneInfo

from rich.table import Table
from rich.text import Text
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Static

from bullpen.cli.views.app import format_moment, sanitize_text, single_line
from bullpen.core.inspect.rooms import Post

OWNER = "owner"
"""The author of posts from the command line."""
MAX_POSTS = 1000
"""The number of posts that are kept; older ones can be read again."""
AUTHOR_WIDTH = 16
WIDE_COLUMNS = 60
COLOURS = ("cyan", "magenta", "blue", "yellow", "bright_cyan", "bright_magenta", "bright_blue")
MENTION = re.compile(r"[@#][a-z0-9][a-z0-9_-]*")

EMPTY_ROOM_TEXT = "No posts yet."
ROOM_START_TEXT = "Beginning of the room."
OLDER_POSTS_HINT = "Older posts: PageUp."


class PostLine(Static):
    """One post: time, author and text."""

    DEFAULT_CSS = "PostLine { height: auto; padding: 0 1; }"

    def __init__(self, post: Post, members: Sequence[str], now: int, zone: ZoneInfo) -> None:
        super().__init__()
        self.post = post
        self._author = _author(post, members)
        self._body = _body(post.message, members)
        self._when = format_moment(post.created_at, now, zone)

    def render(self) -> Table | Text:
        """Three columns, or running text in a narrow terminal."""
        moment = Text(self._when, style="dim")
        if self.app.size.width < WIDE_COLUMNS:
            return Text.assemble(moment, " ", self._author, "\n", self._body)
        author = self._author.copy()
        author.truncate(AUTHOR_WIDTH, overflow="ellipsis")
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, min_width=8)
        table.add_column(ratio=1, overflow="fold")
        table.add_row(moment, author, self._body)
        return table


class Posts(VerticalScroll, can_focus=False):
    """The posts; the view follows the newest unless a person has scrolled up."""

    DEFAULT_CSS = """
    Posts { height: 1fr; scrollbar-size-vertical: 1; }
    Posts > #edge { padding: 0 1; height: auto; }
    """

    def __init__(self, zone: ZoneInfo) -> None:
        super().__init__(Static(id="edge"))
        self._zone = zone
        self._ids: list[int] = []
        self.follows = True
        """Whether it follows the newest post."""
        self.complete = False
        """Whether the first post of the room is shown."""

    @property
    def oldest(self) -> int | None:
        """The id of the first post that is shown."""
        return self._ids[0] if self._ids else None

    class Followed(Message):
        """The newest post is shown."""

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the newest post if the end is shown."""
        super().watch_scroll_y(old_value, new_value)
        self.follows = new_value >= self.max_scroll_y - 1
        if self.follows:
            self.post_message(self.Followed())

    def on_resize(self) -> None:
        """Keep the newest post in view."""
        if self.follows:
            self.call_after_refresh(self.scroll_to_newest)

    async def add(self, posts: Iterable[Post], members: Sequence[str], now: int) -> int:
        """Insert posts in their order; returns how many were new."""
        count = 0
        for post in sorted(posts, key=lambda each: each.id):
            at = bisect_left(self._ids, post.id)
            if at < len(self._ids) and self._ids[at] == post.id:
                continue
            line = PostLine(post, members, now, self._zone)
            if at == len(self._ids):
                await self.mount(line)
            else:
                await self.mount(line, before=self.query(PostLine)[at])
            self._ids.insert(at, post.id)
            count += 1
        if self.follows:
            await self._drop_oldest()
            self.call_after_refresh(self.scroll_to_newest)
        self.mark()
        return count

    async def add_older(
        self,
        posts: Sequence[Post],
        members: Sequence[str],
        now: int,
        done: Callable[[], object],
    ) -> None:
        """Insert older posts at the top without moving the visible ones."""
        fresh = sorted(
            (post for post in posts if not self._ids or post.id < self._ids[0]),
            key=lambda each: each.id,
        )
        lines = [PostLine(post, members, now, self._zone) for post in fresh]
        if not lines:
            done()
            return
        self.follows = False
        height = self.virtual_size.height
        await self.mount(*lines, after=self.query_one("#edge"))
        self._ids[:0] = [post.id for post in fresh]

        def keep() -> None:
            above = self.virtual_size.height - height - 1
            self.scroll_to(y=above, animate=False, immediate=True)
            done()

        self.call_after_refresh(keep)

    def mark(self) -> None:
        """Update the line above the first post."""
        text = ROOM_START_TEXT if self.complete else OLDER_POSTS_HINT
        self.query_one("#edge", Static).update(
            Text(text if self._ids else EMPTY_ROOM_TEXT, style="dim")
        )

    def scroll_to_newest(self) -> None:
        """Scroll to the newest post."""
        self.follows = True
        self.scroll_end(animate=False)

    async def _drop_oldest(self) -> None:
        too_many = len(self._ids) - MAX_POSTS
        if too_many > 0:
            for each in list(self.query(PostLine))[:too_many]:
                await each.remove()
            del self._ids[:too_many]
            self.complete = False


def _author(post: Post, members: Sequence[str]) -> Text:
    if post.from_agent == OWNER:
        return Text("you", style="bold green")
    name = single_line(post.from_agent)
    if post.from_agent in members:
        return Text(f"@{name}", style=f"bold {COLOURS[members.index(name) % len(COLOURS)]}")
    return Text(name, style="bold")


def _body(text: str, members: Sequence[str]) -> Text:
    body = Text(sanitize_text(text).strip("\n"))
    for found in MENTION.finditer(body.plain):
        if found.group()[1:] in members:
            body.stylize("bold", found.start(), found.end())
    return body
