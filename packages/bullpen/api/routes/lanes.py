"""Lanes: the queues of agents, their policies and states."""

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

routes = Routes("lanes", "Agents' queues, their policies and states.")


class LaneAnswer(Answer):
    """An agent's lane."""

    agent: str
    state: LaneState
    reason: str | None = Field(description="Why it is not active.")
    outside: bool = Field(
        description="Whether only external workers answer its messages, and no processor."
    )
    ordering: Ordering
    batching: Batching
    max_depth: int | None
    overflow: Overflow
    max_attempts: int
    pending: int
    processing: int
    worker: str | None = Field(description="The worker of the present claim.")
    claimed_at: int | None = Field(description="The time of the present claim.")
    lease_expires_at: int | None
    waits_until: int | None = Field(
        validation_alias="not_before", description="The end of the wait for a rate limit."
    )
    created_at: int
    updated_at: int


class LaneList(Rows[LaneAnswer]):
    """Lanes."""


class LanePath(BaseModel):
    """Selects a lane."""

    agent: str = Field(max_length=100, description="The agent's id.")


class LaneChange(StrictBody):
    """The fields of a lane's policy to change."""

    ordering: Ordering = Field(
        Ordering.FIFO, description="The order of messages; pending messages are reordered."
    )
    batching: Batching = Field(
        Batching.ALL, description="Whether one run answers one message or several."
    )
    max_depth: int | None = Field(
        None, ge=1, le=MAX_DEPTH, description="Maximum number of pending messages; null: no limit."
    )
    overflow: Overflow = Field(Overflow.REJECT, description="What happens if the lane is full.")
    max_attempts: int | None = Field(
        None,
        ge=1,
        le=MAX_ATTEMPTS,
        description="Failed attempts after which a message is dead; null: the setting.",
    )


@routes.get("/api/lanes", READ)
def lanes() -> LaneList:
    """List the lanes that the key reaches, also of removed agents."""
    with read() as tx:
        lanes = list_lanes(tx)
    return LaneList.of(_lane_answer(each) for each in lanes if caller().can_reach(each.agent))


@routes.get("/api/lanes/<agent>", READ, UnknownAgent)
def lane(path: LanePath) -> LaneAnswer:
    """Get a lane."""
    require_reach(path.agent)
    with read() as tx:
        return _lane_answer(get_lane(tx, path.agent))


@routes.patch("/api/lanes/<agent>", ADMIN, UnknownAgent)
def change(path: LanePath, body: LaneChange) -> LaneAnswer:
    """Change a lane's policy; omitted fields are unchanged."""
    require_reach(path.agent)
    with write() as tx:
        get_agent(tx, path.agent)
        changes = {name: getattr(body, name) for name in body.model_fields_set}
        configure_lane(tx, path.agent, replace(get_lane_policy(tx, path.agent), **changes))
        return _lane_answer(get_lane(tx, path.agent))


@routes.post("/api/lanes/<agent>/pause", ADMIN, UnknownAgent, Conflict)
def pause(path: LanePath, body: Reason) -> Done:
    """Pause an agent's lane.

    No run of the agent starts. New messages are accepted and stay pending.
    """
    return _apply(path, partial(pause_lane, reason=body.reason or "paused"))


@routes.post("/api/lanes/<agent>/resume", ADMIN, UnknownAgent, Conflict)
def resume(path: LanePath) -> Done:
    """Resume an agent's lane."""
    return _apply(path, resume_lane)


@routes.post("/api/lanes/<agent>/drain", ADMIN, UnknownAgent, Conflict)
def drain(path: LanePath, body: Reason) -> Done:
    """Drain an agent's lane.

    New messages are refused, and pending messages are answered.
    """
    return _apply(path, partial(drain_lane, reason=body.reason or "draining"))


@routes.post("/api/lanes/<agent>/archive", ADMIN, UnknownAgent, Conflict, LaneError)
def archive(path: LanePath, body: Reason) -> Done:
    """Archive an agent's empty lane.

    New messages are refused.
    """
    return _apply(path, partial(archive_lane, reason=body.reason or "archived"))


def _apply(path: LanePath, verb: Callable[[Transaction, str], None]) -> Done:
    """Apply the verb to the lane of an agent that exists."""
    require_reach(path.agent)
    with write() as tx:
        get_agent(tx, path.agent)
        verb(tx, path.agent)
    return Done()


def _lane_answer(lane: LaneRecord) -> LaneAnswer:
    # The row keeps the worker and the time of the last claim.
    runs = lane.lease_expires_at is not None
    return LaneAnswer.from_row(
        lane,
        worker=lane.claimed_by if runs else None,
        claimed_at=lane.claimed_at if runs else None,
    )
