"""Rooms as they are read: their posts, and when somebody last said something."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ScalarSelect, Select, bindparam, select

from bullpen.core.clock import MINUTE
from bullpen.core.models import CHAT_MESSAGES, TEAMS
from bullpen.core.models.base import const
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

C = CHAT_MESSAGES.c

PostTuple = tuple[int, str, str, str, int]


def _posts() -> Select[PostTuple]:
    return select(C.id, C.team_id, C.from_agent, C.message, C.created_at).where(
        C.team_id == bindparam("team")
    )


SELECT_NEWEST_POSTS: Statement[PostTuple] = Statement(
    lambda: _posts().order_by(C.id.desc()).limit(bindparam("limit"))
)

SELECT_POSTS_SINCE: Statement[PostTuple] = Statement(
    lambda: (
        _posts()
        .where(
            C.id > bindparam("since_id"),
            C.id <= bindparam("upto"),
            C.created_at > bindparam("since"),
        )
        .order_by(C.id)
        .limit(bindparam("limit"))
    )
)

SELECT_POSTS_BEFORE: Statement[PostTuple] = Statement(
    lambda: (
        _posts().where(C.id < bindparam("before")).order_by(C.id.desc()).limit(bindparam("limit"))
    )
)

# From the newest on: so it costs what came since, and not the whole room.
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


@dataclass(frozen=True, slots=True)
class Post:
    """One thing that was said in a room."""

    id: int
    team_id: str
    from_agent: str
    message: str
    created_at: int


def newest_posts(tx: Transaction, team: str, limit: int) -> list[Post]:
    """The newest posts of a room, the newest first."""
    return [Post(*row) for row in tx.all(SELECT_NEWEST_POSTS, {"team": team, "limit": limit})]


def posts_before(tx: Transaction, team: str, before: int, limit: int) -> list[Post]:
    """The posts that came before this number, the newest first."""
    return [
        Post(*row)
        for row in tx.all(SELECT_POSTS_BEFORE, {"team": team, "before": before, "limit": limit})
    ]


def posts_since(
    tx: Transaction, team: str, *, since_id: int, since: int, upto: int, limit: int
) -> list[Post]:
    """What was posted after this number and this moment, the oldest first."""
    if since > MINUTE:
        # A post that was under way for a while has a later number than its moment says.
        row = tx.one(SELECT_LAST_ID_BEFORE, {"team": team, "before": since - MINUTE})
        since_id = max(since_id, 0 if row is None else row[0])
    values = {"team": team, "since_id": since_id, "since": since, "upto": upto, "limit": limit}
    return [Post(*row) for row in tx.all(SELECT_POSTS_SINCE, values)]


def last_posted_at(tx: Transaction) -> dict[str, int]:
    """When somebody last posted in each team's room, where anybody has."""
    return {team: at for team, at in tx.all(SELECT_LAST_POSTED_AT, {}) if at is not None}
