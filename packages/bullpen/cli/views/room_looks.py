"""What the view of a room looks at: its posts, each once, and which members are at work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bullpen.core.clock import SECOND
from bullpen.core.events.append import EventType
from bullpen.core.events.tail import Event, EventTail
from bullpen.core.history.rooms import Post, newest_posts, posts_since
from bullpen.core.queue.status import list_lane_statuses
from bullpen.core.roster.team import Team
from bullpen.core.roster.teams import get_team
from bullpen.core.store.base import Store
from bullpen.core.store.listing import MAX_ROW_ID
from bullpen.core.store.transaction import Transaction

INITIAL_POSTS = 50
"""So many posts are shown when a room is entered, and more of the older ones each time."""
PAGE_POSTS = 500
LOOK_SECONDS = 5


@dataclass(frozen=True, slots=True)
class RoomUpdate:
    """The room as it is now, and what was posted since the last news; some perhaps once more."""

    at: int
    team: Team
    working: tuple[str, ...]
    """Which members answer something just now."""
    posts: tuple[Post, ...]
    whole: bool
    """Whether these are all the posts that there are."""


@dataclass(slots=True)
class RoomReader:
    """Looks at the room of a team; it remembers across a loss of the store what was seen."""

    team: str
    _entered: bool = False
    _last: int = 0
    """The highest number of the posts that were told of."""

    def __call__(self, store: Store) -> Iterator[RoomUpdate | None]:
        """First the last posts, or those since the store was lost; then each new one."""
        tail = EventTail.from_now(store)
        with store.read() as tx:
            posts = (
                self._missed(tx)
                if self._entered
                else newest_posts(tx, self.team, INITIAL_POSTS)[::-1]
            )
            whole = not self._entered and len(posts) < INITIAL_POSTS
            news = self._news(tx, posts, whole=whole)
        self._entered = True
        yield news
        while True:
            events = tail.read(PAGE_POSTS)
            numbers = [_post(event) for event in events if self._ours(event)]
            old = store.clock.now() - news.at >= LOOK_SECONDS * SECOND
            if not (events or old):
                yield None
                continue
            with store.read() as tx:
                news = self._news(tx, self._posted(tx, numbers), whole=False)
            yield news

    def _news(self, tx: Transaction, posts: Sequence[Post], *, whole: bool) -> RoomUpdate:
        team = get_team(tx, self.team)
        self._last = max([self._last, *(post.id for post in posts)])
        busy = {each.agent for each in list_lane_statuses(tx) if each.processing}
        working = tuple(each for each in team.members if each in busy)
        return RoomUpdate(tx.now, team, working, tuple(posts), whole)

    def _missed(self, tx: Transaction) -> list[Post]:
        # On PostgreSQL a lower number may have come after a higher one: some are told of again.
        return _between(tx, self.team, max(0, self._last - INITIAL_POSTS), MAX_ROW_ID)

    def _posted(self, tx: Transaction, numbers: Sequence[int]) -> list[Post]:
        """The posts of these numbers: an event tells of each when it can be seen."""
        return _between(tx, self.team, min(numbers) - 1, max(numbers)) if numbers else []

    def _ours(self, event: Event) -> bool:
        return event.type == EventType.ROOM_POSTED and event.data.get("team") == self.team


def _between(tx: Transaction, team: str, since: int, upto: int) -> list[Post]:
    """All posts after the one number and up to the other."""
    found: list[Post] = []
    while True:
        page = posts_since(tx, team, since_id=since, since=0, upto=upto, limit=PAGE_POSTS)
        found += page
        if len(page) < PAGE_POSTS:
            return found
        since = page[-1].id


def _post(event: Event) -> int:
    number = event.data.get("post")
    return number if isinstance(number, int) else 0
