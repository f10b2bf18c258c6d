"""Heartbeats: agents that look after their work without being asked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bullpen.api.context import api, caller, read, require_reach, write
from bullpen.api.route import ADMIN, READ, Routes
from bullpen.api.routes.agents import AgentPath
from bullpen.api.schemas import Answer, Done, LenientBody, LongText, Number, Page, Rows, page_end
from bullpen.core.clock import SECOND
from bullpen.core.errors import InTheWay, NotFound
from bullpen.core.heartbeats.history import list_heartbeat_runs
from bullpen.core.heartbeats.manage import (
    HeartbeatChange,
    change_heartbeat,
    get_heartbeat,
    list_heartbeats,
)
from bullpen.core.heartbeats.model import ActiveHours, Heartbeat, HeartbeatState
from bullpen.core.models import BEATS
from bullpen.core.outbox.addresses import OWNER, parse_address
from bullpen.core.roster.agents import get_agent
from bullpen.core.settings import Settings
from bullpen.core.text import sanitise_text
from bullpen.core.workspace.contents import (
    heartbeat_path,
    read_heartbeat_text,
    write_heartbeat_text,
)
from bullpen.core.workspace.templates import prepare_directory

routes = Routes("heartbeats", "How agents are woken to look after their work.")


class HeartbeatBody(LenientBody):
    """What of a heartbeat is to be changed; what is not sent stays."""

    content: str | None = Field(None, description="what is in the agent's heartbeat.md")
    enabled: bool | None = None
    interval: Number | None = Field(None, description="in seconds; 60 at least")
    hours: Annotated[str, Field(max_length=40)] | None = Field(
        None, description="as `08:00-18:00`, by the owner's clock; null is all day"
    )
    budget: Number | None = Field(None, description="so many beats a day at the most")
    max_silent: Number | None = Field(
        None, description="after so many silent ones in a row it is paused; 0 is never"
    )
    to: LongText | None = Field(
        None, description="where it is said if there is something to say; `owner` is the default"
    )


class HeartbeatAnswer(Answer):
    """How an agent is woken, and how it has fared."""

    agent: str
    enabled: bool
    interval: int = Field(description="in seconds")
    state: HeartbeatState
    reason: str | None = Field(description="why it is paused")
    hours: str | None = Field(description="null is all day")
    budget: int
    max_silent: int
    to: str
    silent: int = Field(description="beats in a row at which it had nothing to say")
    errors: int = Field(description="beats in a row that failed")
    due_at: int | None
    last_at: int | None


class HeartbeatText(HeartbeatAnswer):
    """The same, with what the agent is told."""

    content: str
    path: str


class HeartbeatList(Rows[HeartbeatAnswer]):
    """Heartbeats."""


class HeartbeatRunAnswer(Answer):
    """One beat."""

    id: int
    due_at: int
    fired_at: int
    outcome: str = Field(description="`sent`, `silent`, `said`, `failed` or `skipped`")
    message_id: str | None
    reason: str | None


class HeartbeatRunList(Rows[HeartbeatRunAnswer]):
    """Beats."""


@routes.get("/api/heartbeats", READ)
def heartbeats() -> HeartbeatList:
    """List the heartbeats that were ever set up, as far as the key reaches."""
    with read() as tx:
        heartbeats = list_heartbeats(tx)
    mine = (each for each in heartbeats if caller().can_reach(each.agent))
    return HeartbeatList.of(HeartbeatAnswer.from_row(each, **_values(each)) for each in mine)


@routes.get("/api/agents/<agent_id>/heartbeat", READ, NotFound)
def heartbeat(path: AgentPath) -> HeartbeatText:
    """Show how an agent is woken, and what it is told then."""
    current, settings = _get_heartbeat(path), api().settings
    return HeartbeatText.from_row(
        current,
        content=read_heartbeat_text(settings, current.agent),
        path=sanitise_text(str(heartbeat_path(settings, current.agent))),
        **_values(current),
    )


@routes.put("/api/agents/<agent_id>/heartbeat", ADMIN, NotFound, InTheWay)
def put(path: AgentPath, body: HeartbeatBody) -> Done:
    """Change how an agent is woken, or what it is told; what is not sent stays.

    To turn it on begins its counts anew.
    """
    current, settings = _get_heartbeat(path), api().settings
    text = body.content
    if text is not None and text == read_heartbeat_text(settings, current.agent):
        text = None
    change = _change(body, settings)
    if text is not None:
        prepare_directory(settings, current.agent)
    with write() as tx:
        get_agent(tx, current.agent)
        if change:
            change_heartbeat(tx, current.agent, **change)
        # Last, before the transaction commits: either all of it is done, or nothing.
        if text is not None:
            write_heartbeat_text(settings, current.agent, text)
    return Done()


@routes.get("/api/agents/<agent_id>/heartbeat/beats", READ, NotFound)
def beats(path: AgentPath, query: Page) -> HeartbeatRunList:
    """List an agent's beats, and what came of each.

    The newest first; with `since_id` what came after it, the oldest first.
    """
    agent = _get_heartbeat(path).agent
    last = page_end(BEATS, query)
    with read() as tx:
        rows = list_heartbeat_runs(tx, agent, query.since_id, query.limit, last)
    return HeartbeatRunList.page(rows, query)


def _get_heartbeat(path: AgentPath) -> Heartbeat:
    require_reach(path.agent_id)
    with read() as tx:
        return get_heartbeat(tx, get_agent(tx, path.agent_id).id)


def _values(heartbeat: Heartbeat) -> dict[str, object]:
    """The fields of its answer that have another form than in core."""
    return {
        "enabled": heartbeat.state is HeartbeatState.ON,
        "interval": heartbeat.every // SECOND,
        "hours": None if heartbeat.hours is None else str(heartbeat.hours),
        "to": OWNER if heartbeat.place is None else str(heartbeat.place),
    }


def _change(body: HeartbeatBody, settings: Settings) -> HeartbeatChange:
    change = HeartbeatChange()
    if body.enabled is not None:
        change["on"] = body.enabled
    if body.interval is not None:
        change["every"] = body.interval * SECOND
    if "hours" in body.model_fields_set:
        change["hours"] = None if body.hours is None else ActiveHours.parse(body.hours)
    if body.budget is not None:
        change["budget"] = body.budget
    if body.max_silent is not None:
        change["max_silent"] = body.max_silent
    if body.to is not None:
        change["place"] = None if body.to == OWNER else parse_address(body.to, settings)
    return change
