"""Lanes: an agent's queue, how it behaves, and whether it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pydantic import BaseModel, Field

from bullpen.api.context import caller, read, require_reach, write
from bullpen.api.route import ADMIN, READ, Routes
from bullpen.api.routes.messages import Reason
from bullpen.api.schemas import Answer, Done, Rows, StrictBody
from bullpen.core.errors import Conflict, LaneError, UnknownAgent
from bullpen.core.inspect.lanes import LaneRecord, get_lane, list_lanes
from bullpen.core.queue.lanes import (
    MAX_ATTEMPTS,
    MAX_DEPTH,
    Batching,
    Ordering,
    Overflow,
    archive_lane,
    configure_lane,
    drain_lane,
    get_lane_policy,
    pause_lane,
    resume_lane,
)
from bullpen.core.roster.agents import get_agent
from bullpen.core.states import LaneState
from bullpen.core.store.transaction import Transaction

routes = Routes("lanes", "Agents' queues: how each behaves, and whether it runs.")


class LaneAnswer(Answer):
    """An agent's lane."""

    agent: str
    state: LaneState
    reason: str | None = Field(description="why it is not active")
    outside: bool = Field(description="whether workers outside answer it, and no processor does")
    ordering: Ordering
    batching: Batching
    max_depth: int | None
    overflow: Overflow
    max_attempts: int
    pending: int
    processing: int
    worker: str | None = Field(description="who answers it now")
    claimed_at: int | None = Field(description="since when")
    lease_expires_at: int | None
    waits_until: int | None = Field(
        validation_alias="not_before", description="a rate limit makes it wait until then"
    )
    created_at: int
    updated_at: int


class LaneList(Rows[LaneAnswer]):
    """Lanes."""


class LanePath(BaseModel):
    """Whose lane."""

    agent: str = Field(max_length=100, description="the agent's id")


class LaneChange(StrictBody):
    """How it is to behave; what is not named stays."""

    ordering: Ordering = Field(Ordering.FIFO, description="what waits is put into the new order")
    batching: Batching = Field(Batching.ALL, description="how many messages one run answers")
    max_depth: int | None = Field(
        None, ge=1, le=MAX_DEPTH, description="how many messages may wait; null is any number"
    )
    overflow: Overflow = Field(Overflow.REJECT, description="what happens when it is full")
    max_attempts: int | None = Field(
        None,
        ge=1,
        le=MAX_ATTEMPTS,
        description="failed runs before a message is dead; null is the setting",
    )


@routes.get("/api/lanes", READ)
def lanes() -> LaneList:
    """List the lanes, those of removed agents included, as far as the key reaches."""
    with read() as tx:
        lanes = list_lanes(tx)
    return LaneList.of(_lane_answer(each) for each in lanes if caller().can_reach(each.agent))


@routes.get("/api/lanes/<agent>", READ, UnknownAgent)
def lane(path: LanePath) -> LaneAnswer:
    """Show one lane."""
    require_reach(path.agent)
    with read() as tx:
        return _lane_answer(get_lane(tx, path.agent))


@routes.patch("/api/lanes/<agent>", ADMIN, UnknownAgent)
def change(path: LanePath, body: LaneChange) -> LaneAnswer:
    """Change how a lane behaves; what is not named stays as it is."""
    require_reach(path.agent)
    with write() as tx:
        get_agent(tx, path.agent)
        changes = {name: getattr(body, name) for name in body.model_fields_set}
        configure_lane(tx, path.agent, replace(get_lane_policy(tx, path.agent), **changes))
        return _lane_answer(get_lane(tx, path.agent))


@routes.post("/api/lanes/<agent>/pause", ADMIN, UnknownAgent, Conflict)
def pause(path: LanePath, body: Reason) -> Done:
    """Begin no more runs of this agent; messages still come in, and wait."""
    return _apply(path, partial(pause_lane, reason=body.reason or "paused"))


@routes.post("/api/lanes/<agent>/resume", ADMIN, UnknownAgent, Conflict)
def resume(path: LanePath) -> Done:
    """Let the agent take in and answer again."""
    return _apply(path, resume_lane)


@routes.post("/api/lanes/<agent>/drain", ADMIN, UnknownAgent, Conflict)
def drain(path: LanePath, body: Reason) -> Done:
    """Take nothing new in, and answer what is there."""
    return _apply(path, partial(drain_lane, reason=body.reason or "draining"))


@routes.post("/api/lanes/<agent>/archive", ADMIN, UnknownAgent, Conflict, LaneError)
def archive(path: LanePath, body: Reason) -> Done:
    """Close an empty lane: nothing in, nothing out."""
    return _apply(path, partial(archive_lane, reason=body.reason or "archived"))


def _apply(path: LanePath, verb: Callable[[Transaction, str], None]) -> Done:
    """Apply the verb to the lane of an agent that exists."""
    require_reach(path.agent)
    with write() as tx:
        get_agent(tx, path.agent)
        verb(tx, path.agent)
    return Done()


def _lane_answer(lane: LaneRecord) -> LaneAnswer:
    # What it ran last stays in its row.
    runs = lane.lease_expires_at is not None
    return LaneAnswer.from_row(
        lane,
        worker=lane.claimed_by if runs else None,
        claimed_at=lane.claimed_at if runs else None,
    )
