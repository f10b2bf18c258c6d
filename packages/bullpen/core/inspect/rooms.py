"""Read the posts in rooms: the newest ones, by page, filtered, and the time of the last one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from sqlalchemy import ScalarSelect, Select, bindparam, select

from bullpen.core.clock import MINUTE
from bullpen.core.models import CHAT_MESSAGES, TEAMS
from bullpen.core.models.base import const
from bullpen.core.store.paging import since_values
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

C = CHAT_MESSAGES.c


@dataclass(frozen=True, slots=True)
class Post:
    """One post in a team's room."""

    id: int
    team_id: str
    from_agent: str
    message: str
    created_at: int


def _posts() -> Select[*tuple[object, ...]]:
    return select(*columns(Post, CHAT_MESSAGES)).where(C.team_id == bindparam("team"))


SELECT_NEWEST_POSTS: Statement[Post] = Statement(
    lambda: _posts().order_by(C.id.desc()).limit(bindparam("limit")), Post
)


SELECT_POSTS_SINCE: Statement[Post] = Statement(
    lambda: (
        _posts()
        .where(
            C.id > bindparam("since_id"),
            C.id <= bindparam("upto"),
            C.created_at > bindparam("since"),
        )
        .order_by(C.id)
        .limit(bindparam("limit"))
    ),
    Post,
)


SELECT_POSTS_BEFORE: Statement[Post] = Statement(
    lambda: (
        _posts().where(C.id < bindparam("before")).order_by(C.id.desc()).limit(bindparam("limit"))
    ),
    Post,
)


# Starts with the newest, so that only posts since that moment are read.
SELECT_LAST_ID_BEFORE: Statement[tuple[int]] = Statement(
    lambda: (
        select(C.id)
        .where(C.team_id == bindparam("team"), C.created_at <= bindparam("before"))
        .order_by(C.id.desc())
        .limit(const(1))
    )
)


def _last_post() -> ScalarSelect[int]:
    return (
        select(C.created_at)
        .where(C.team_id == TEAMS.c.id)
        .order_by(C.id.desc())
        .limit(const(1))
        .scalar_subquery()
    )


SELECT_LAST_POSTED_AT: Statement[tuple[str, int | None]] = Statement(
    lambda: select(TEAMS.c.id, _last_post())
)


def newest_posts(tx: Transaction, team: str, limit: int) -> list[Post]:
    """The newest posts of a room, newest first."""
    return tx.page(SELECT_NEWEST_POSTS, {"team": team, "limit": limit})


def posts_before(tx: Transaction, team: str, before: int, limit: int) -> list[Post]:
    """The posts before an id, newest first."""
    return tx.all(SELECT_POSTS_BEFORE, {"team": team, "before": before, "limit": limit})


def posts_since(
    tx: Transaction, team: str, *, since_id: int, since: int, upto: int, limit: int
) -> list[Post]:
    """The posts after an id and a moment, up to another id, oldest first."""
    if since > MINUTE:
        # Ids are taken before their transactions commit, so their order may differ from the times.
        row = tx.one(SELECT_LAST_ID_BEFORE, {"team": team, "before": since - MINUTE})
        since_id = max(since_id, 0 if row is None else row[0])
    values = {"team": team, "since_id": since_id, "since": since, "upto": upto, "limit": limit}
    return tx.page(SELECT_POSTS_SINCE, values)


def list_posts(
    tx: Transaction, team: str, author: str | None, since: int | None, limit: int
) -> list[Post]:
    """The newest posts of a room, by all authors or by one, oldest first."""
    for each in (team, author or ""):
        check_text(each, tx.settings.message_bytes, "the filter")
    values = {
        "team": team,
        "author": author,
        **since_values(tx, CHAT_MESSAGES, since),
        "limit": limit,
    }
    return tx.all(_select_filtered_posts(by_one=author is not None), values)[::-1]


def last_posted_at(tx: Transaction) -> dict[str, int]:
    """The time of the last post in each team's room, without empty rooms."""
    return {team: at for team, at in tx.all(SELECT_LAST_POSTED_AT, {}) if at is not None}


def _newest_posts() -> Select[*tuple[object, ...]]:
    return (
        _posts()
        .where(C.id > bindparam("after"), C.created_at >= bindparam("since"))
        .order_by(C.id.desc())
        .limit(bindparam("limit"))
    )


@cache
def _select_filtered_posts(*, by_one: bool) -> Statement[Post]:
    return Statement(
        lambda: (
            _newest_posts().where(C.from_agent == bindparam("author"))
            if by_one
            else _newest_posts()
        ),
        Post,
    )
