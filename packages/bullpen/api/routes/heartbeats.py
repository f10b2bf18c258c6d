"""Heartbeats: the scheduled wake-ups of agents."""

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

routes = Routes("heartbeats", "Scheduled wake-ups of agents.")


class HeartbeatBody(LenientBody):
    """The fields of a heartbeat to change."""

    content: str | None = Field(None, description="The text of the agent's heartbeat.md.")
    enabled: bool | None = None
    interval: Number | None = Field(None, description="Seconds between heartbeats; at least 60.")
    hours: Annotated[str, Field(max_length=40)] | None = Field(
        None,
        description="Active hours in the owner's time zone, such as `08:00-18:00`; null: all day.",
    )
    budget: Number | None = Field(None, description="Maximum number of heartbeats a day.")
    max_silent: Number | None = Field(
        None,
        description="Heartbeats in a row with nothing to report before a pause; 0: never.",
    )
    to: LongText | None = Field(
        None, description="The reply address for its answers; by default `owner`."
    )


class HeartbeatAnswer(Answer):
    """An agent's heartbeat."""

    agent: str
    enabled: bool
    interval: int = Field(description="Seconds between heartbeats.")
    state: HeartbeatState
    reason: str | None = Field(description="Why it is paused.")
    hours: str | None = Field(description="Active hours; null: all day.")
    budget: int
    max_silent: int
    to: str
    silent: int = Field(description="Heartbeats in a row with nothing to report.")
    errors: int = Field(description="Failed heartbeats in a row.")
    due_at: int | None
    last_at: int | None


class HeartbeatText(HeartbeatAnswer):
    """An agent's heartbeat with its text."""

    content: str
    path: str


class HeartbeatList(Rows[HeartbeatAnswer]):
    """Heartbeats."""


class HeartbeatRunAnswer(Answer):
    """One run of a heartbeat."""

    id: int
    due_at: int
    fired_at: int
    outcome: str = Field(description="`sent`, `silent`, `said`, `failed` or `skipped`.")
    message_id: str | None
    reason: str | None


class HeartbeatRunList(Rows[HeartbeatRunAnswer]):
    """Runs of a heartbeat."""


@routes.get("/api/heartbeats", READ)
def heartbeats() -> HeartbeatList:
    """List heartbeats of the agents that the key reaches.

    An agent whose heartbeat was never set up is not listed.
    """
    with read() as tx:
        heartbeats = list_heartbeats(tx)
    mine = (each for each in heartbeats if caller().can_reach(each.agent))
    return HeartbeatList.of(HeartbeatAnswer.from_row(each, **_values(each)) for each in mine)


@routes.get("/api/agents/<agent_id>/heartbeat", READ, NotFound)
def heartbeat(path: AgentPath) -> HeartbeatText:
    """Get an agent's heartbeat and its text."""
    current, settings = _get_heartbeat(path), api().settings
    return HeartbeatText.from_row(
        current,
        content=read_heartbeat_text(settings, current.agent),
        path=sanitise_text(str(heartbeat_path(settings, current.agent))),
        **_values(current),
    )


@routes.put("/api/agents/<agent_id>/heartbeat", ADMIN, NotFound, InTheWay)
def put(path: AgentPath, body: HeartbeatBody) -> Done:
    """Change an agent's heartbeat or its text.

    Omitted fields are unchanged. Enabling a heartbeat resets its counts.
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
        # The last step before the commit, so that either everything is changed or nothing.
        if text is not None:
            write_heartbeat_text(settings, current.agent, text)
    return Done()


@routes.get("/api/agents/<agent_id>/heartbeat/beats", READ, NotFound)
def beats(path: AgentPath, query: Page) -> HeartbeatRunList:
    """List the runs of an agent's heartbeat with their outcomes.

    Newest first; with `since_id`, the later ones, oldest first.
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
    """Return the fields whose form differs from core."""
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
