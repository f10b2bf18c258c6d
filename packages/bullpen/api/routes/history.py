"""/api/history and the rooms of teams: what was said, and by whom."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from pydantic import BaseModel, Field

from bullpen.api.context import caller, read, require_reach, write
from bullpen.api.route import PUBLISH, READ, Routes
from bullpen.api.schemas import (
    MAX_PAGE_ROWS,
    Answer,
    CamelAnswer,
    Cursor,
    Done,
    Page,
    Rows,
    StrictBody,
    page_end,
)
from bullpen.core.errors import BadText, LaneError, NameTaken, NotFound
from bullpen.core.inspect.history import (
    history_since,
    list_people,
    newest_history,
    search_history,
)
from bullpen.core.inspect.rooms import last_posted_at, newest_posts, posts_since
from bullpen.core.intake import post_in_room
from bullpen.core.models import AGENT_MESSAGES, CHAT_MESSAGES
from bullpen.core.roster.teams import get_team, list_teams
from bullpen.core.store.transaction import Transaction

routes = Routes("history", "What was said, and by whom.")

Name = Annotated[str, Field(max_length=200)]


class HistoryEntryAnswer(Answer):
    """One thing that was said."""

    id: int
    agent_id: str
    role: str = Field(
        description="`user` was said to the agent, `assistant` by it, or with the sender `bullpen`"
        " to a person instead of an answer; `note` is for the agent alone"
    )
    channel: str
    sender: str
    message_id: str
    content: str
    created_at: int


class HistoryEntryList(Rows[HistoryEntryAnswer]):
    """What was said."""


class AgentPath(BaseModel):
    """Which agent."""

    agent_id: str = Field(max_length=200, description="the agent's id, of one that is gone as well")


class HistoryQuery(Page):
    """Which part of the history."""

    agent: Name | None = Field(None, description="only what was said to this one, or by it")


class SearchQuery(BaseModel):
    """What to look for."""

    text: str = Field(min_length=1, max_length=200, description="whatever its case")
    agent: Name | None = Field(None, description="only what was said to this one, or by it")
    limit: int = Field(20, ge=1, le=MAX_PAGE_ROWS, description="how many at the most")


class PersonAnswer(Answer):
    """Somebody who wrote, and where."""

    channel: str
    sender: str
    sender_id: str | None


class PersonList(Rows[PersonAnswer]):
    """People."""


@routes.get("/api/agents/<agent_id>/messages", READ)
def of_agent(path: AgentPath, query: Page) -> HistoryEntryList:
    """Read what was said to an agent and by it.

    The newest first; with a `since_id` above 0 what came after it, the oldest first. What was said
    to an agent is there from the moment it is accepted, and stays when the agent is removed.
    """
    require_reach(path.agent_id)
    # The reference's clients always send `since_id=0`, and expect the newest.
    newest = Page(limit=query.limit, since_id=query.since_id or None)
    return _list_history([path.agent_id], newest)


@routes.get("/api/agent-messages", READ)
def of_all(query: HistoryQuery) -> HistoryEntryList:
    """Read what was said to all agents, and by them; or to one of them, and by it.

    The newest first; with `since_id` what came after it, the oldest first.
    """
    if query.agent is not None:
        require_reach(query.agent)
        return _list_history([query.agent], query)
    return _list_history(caller().agents, query)


@routes.get("/api/history/search", READ)
def search(query: SearchQuery) -> HistoryEntryList:
    """Find where a text occurs, the newest first."""
    require_reach(query.agent)
    with read() as tx:
        return HistoryEntryList.of(search_history(tx, query.text, query.agent, query.limit))


@routes.get("/api/people", READ)
def people() -> PersonList:
    """List who wrote, on which channel and under which id."""
    require_reach(None)
    with read() as tx:
        return PersonList.of(list_people(tx))


def _list_history(agents: Collection[str] | None, query: Page) -> HistoryEntryList:
    upto = page_end(AGENT_MESSAGES, query)
    with read() as tx:
        if query.since_id is None:
            rows = newest_history(tx, agents, query.limit)
        else:
            rows = history_since(tx, agents, query.since_id, upto, query.limit)
    return HistoryEntryList.page(rows, query)


room_routes = Routes("rooms", "What a team says among itself.")


FIRST_MOMENT = 10**11
"""A smaller `since` (before March 1973) is a post's number, as the reference's viewer sends it."""


class RoomPath(BaseModel):
    """Whose room."""

    team_id: str = Field(description="the team's id")


class RoomQuery(Page):
    """Which posts."""

    since: Cursor | None = Field(
        None,
        description="only what was posted after this moment, or below 10^11 after the post of this"
        " number, the oldest first; 0 is the newest posts, the newest first",
    )


class PostAnswer(Answer):
    """One post."""

    id: int
    team_id: str
    from_agent: str = Field(description="who said it: an agent, or a person's name")
    message: str
    created_at: int


class PostList(Rows[PostAnswer]):
    """Posts."""


class NewPostBody(StrictBody):
    """What a person says in a room."""

    message: str
    sender: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        "user", description="the person's name; not an agent's"
    )


class NewPostAnswer(Done):
    """It is in the room, and every member will read it."""

    id: int
    conversation_id: str


class Room(CamelAnswer):
    """A room in which something was said."""

    team_id: str
    file: str = Field(description="where its posts are read")
    time: int = Field(description="when somebody last said something")


class RoomList(Rows[Room]):
    """Rooms."""


@room_routes.get("/api/chatroom/<team_id>", READ, NotFound)
def posts(path: RoomPath, query: RoomQuery) -> PostList:
    """Read a room.

    The newest posts first; with `since_id`, or a `since` above 0, what came after it, the oldest
    first.
    """
    since_id, since = query.since_id, query.since or None
    if since is not None:
        if since < FIRST_MOMENT:
            since_id, since = max(since_id or 0, since), None
        else:
            since_id = since_id or 0
    page = Page(limit=query.limit, since_id=since_id)
    with read() as tx:
        _require_members(tx, path.team_id)
    upto = page_end(CHAT_MESSAGES, page)
    with read() as tx:
        if page.since_id is None:
            rows = newest_posts(tx, path.team_id, page.limit)
        else:
            rows = posts_since(
                tx,
                path.team_id,
                since_id=page.since_id,
                since=-1 if since is None else since,
                upto=upto,
                limit=page.limit,
            )
    return PostList.page(rows, page)


@room_routes.post("/api/chatroom/<team_id>", PUBLISH, NotFound, NameTaken, LaneError)
def post(path: RoomPath, body: NewPostBody) -> NewPostAnswer:
    """Say something to every member of a team."""
    text = body.message.strip()
    if not text:
        raise BadText("the message is empty")
    with write() as tx:
        _require_members(tx, path.team_id)
        posted = post_in_room(tx, path.team_id, text, body.sender, caller().bounded_id)
    return NewPostAnswer(id=posted.id, conversation_id=posted.conversation_id)


@room_routes.get("/api/chats", READ)
def rooms() -> RoomList:
    """List the rooms in which something was said, the latest first."""
    with read() as tx:
        times = last_posted_at(tx)
        rooms = [
            Room(team_id=team.id, file=f"/api/chatroom/{team.id}", time=times[team.id])
            for team in list_teams(tx)
            if team.id in times and all(map(caller().can_reach, team.members))
        ]
    rooms.sort(key=lambda room: (-room.time, room.team_id))
    return RoomList.of(rooms)


def _require_members(tx: Transaction, team_id: str) -> None:
    """Refuse a caller who does not reach every member."""
    for member in get_team(tx, team_id).members:
        require_reach(member)
