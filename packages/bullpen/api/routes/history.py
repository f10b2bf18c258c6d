"""Message history of agents, and the rooms of teams."""

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

routes = Routes("history", "Message history of agents.")

Name = Annotated[str, Field(max_length=200)]


class HistoryEntryAnswer(Answer):
    """One entry of the history."""

    id: int
    agent_id: str
    role: str = Field(
        description="`user`: a message to the agent. `assistant`: a response of the agent, or, with"
        " the sender `bullpen`, a notice to the person instead of a response. `note`: only for the"
        " agent."
    )
    channel: str
    sender: str
    message_id: str
    content: str
    created_at: int


class HistoryEntryList(Rows[HistoryEntryAnswer]):
    """Entries of the history."""


class AgentPath(BaseModel):
    """Selects an agent."""

    agent_id: str = Field(
        max_length=200, description="The agent's id; the agent may have been removed."
    )


class HistoryQuery(Page):
    """Filters of the history."""

    agent: Name | None = Field(None, description="Only messages to and from this agent.")


class SearchQuery(BaseModel):
    """A search of the history."""

    text: str = Field(min_length=1, max_length=200, description="The text, in any case.")
    agent: Name | None = Field(None, description="Only messages to and from this agent.")
    limit: int = Field(20, ge=1, le=MAX_PAGE_ROWS, description="Maximum number of results.")


class PersonAnswer(Answer):
    """A person who wrote, and the channel."""

    channel: str
    sender: str
    sender_id: str | None


class PersonList(Rows[PersonAnswer]):
    """People."""


@routes.get("/api/agents/<agent_id>/messages", READ)
def of_agent(path: AgentPath, query: Page) -> HistoryEntryList:
    """List the messages to and from an agent.

    Newest first; with a `since_id` above 0, the later ones, oldest first. A message is in the
    history as soon as it is accepted, and stays there when the agent is removed.
    """
    require_reach(path.agent_id)
    # TinyAGI's clients always send `since_id=0`, and expect the newest.
    newest = Page(limit=query.limit, since_id=query.since_id or None)
    return _list_history([path.agent_id], newest)


@routes.get("/api/agent-messages", READ)
def of_all(query: HistoryQuery) -> HistoryEntryList:
    """List the messages to and from all agents, or one agent.

    Newest first; with `since_id`, the later ones, oldest first.
    """
    if query.agent is not None:
        require_reach(query.agent)
        return _list_history([query.agent], query)
    return _list_history(caller().agents, query)


@routes.get("/api/history/search", READ)
def search(query: SearchQuery) -> HistoryEntryList:
    """Search the history for a text, newest first."""
    require_reach(query.agent)
    with read() as tx:
        return HistoryEntryList.of(search_history(tx, query.text, query.agent, query.limit))


@routes.get("/api/people", READ)
def people() -> PersonList:
    """List the people who wrote, with channel and id."""
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


room_routes = Routes("rooms", "Chat rooms of teams.")


FIRST_MOMENT = 10**11
"""A smaller `since` (before March 1973) is a post's number, as TinyAGI's viewer sends it."""


class RoomPath(BaseModel):
    """Selects a room."""

    team_id: str = Field(description="The team's id.")


class RoomQuery(Page):
    """Filters of posts."""

    since: Cursor | None = Field(
        None,
        description="Only posts after this time, oldest first; a value below 10^11 is the number of"
        " a post. 0: the newest posts, newest first.",
    )


class PostAnswer(Answer):
    """A post."""

    id: int
    team_id: str
    from_agent: str = Field(description="The author: an agent, or a person's name.")
    message: str
    created_at: int


class PostList(Rows[PostAnswer]):
    """Posts."""


class NewPostBody(StrictBody):
    """A person's post."""

    message: str
    sender: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        "user", description="The person's name; not an agent's name."
    )


class NewPostAnswer(Done):
    """The stored post, which every member of the team receives."""

    id: int
    conversation_id: str


class Room(CamelAnswer):
    """A room with posts."""

    team_id: str
    file: str = Field(description="The path of its posts in this API.")
    time: int = Field(description="The time of the newest post.")


class RoomList(Rows[Room]):
    """Rooms."""


@room_routes.get("/api/chatroom/<team_id>", READ, NotFound)
def posts(path: RoomPath, query: RoomQuery) -> PostList:
    """List the posts of a room.

    Newest first; with `since_id`, or a `since` above 0, the later ones, oldest first.
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
    """Post in a team's room, for every member."""
    text = body.message.strip()
    if not text:
        raise BadText("the message is empty")
    with write() as tx:
        _require_members(tx, path.team_id)
        posted = post_in_room(tx, path.team_id, text, body.sender, caller().bounded_id)
    return NewPostAnswer(id=posted.id, conversation_id=posted.conversation_id)


@room_routes.get("/api/chats", READ)
def rooms() -> RoomList:
    """List the rooms with posts, the latest post first."""
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
