"""Agents, teams, providers and models."""

from __future__ import annotations

from bullpen.core.queue.lanes import Batching, Ordering, Overflow
from bullpen.core.roster.agents import Context, Permission, Reach, Sandbox, Scheduling
from bullpen.core.roster.providers import ProviderOrigin
from bullpen.core.roster.teams import DeliveryMode
from bullpen.core.states import LaneState
from tests.cli.schemas.base import Document


class AgentLane(Document):
    state: LaneState
    reason: str | None
    pending: int
    processing: int


class Agent(Document):
    id: str
    name: str
    provider: str
    model: str
    directory: str
    system_prompt: str
    permission: Permission
    context: Context
    scheduling: Scheduling
    reach: Reach
    sandbox: Sandbox
    resets: int
    lane: AgentLane


class Policy(Document):
    ordering: Ordering
    batching: Batching
    max_depth: int | None
    overflow: Overflow
    max_attempts: int


class LanePolicy(Policy):
    agent: str


class AgentShown(Agent):
    teams: list[str]
    place: str
    policy: Policy


class AgentReset(Document):
    reset: list[str]


class AgentProvider(Document):
    agent: str
    provider: str
    model: str


class AgentRemoved(Document):
    agent: str
    waiting: int
    running: int
    teams: list[str]
    disbanded: list[str]
    schedules: list[str]
    heartbeat: bool
    removed: bool
    files_deleted: bool


class Team(Document):
    id: str
    name: str
    leader: str
    members: list[str]
    delivery: DeliveryMode
    max_hops: int | None
    max_messages: int | None
    max_cost: float | None


class Member(Document):
    id: str
    name: str
    provider: str
    model: str
    state: str
    pending: int
    processing: int


class Limits(Document):
    max_hops: int
    max_messages: int
    max_cost: float


class TeamShown(Team):
    limits: Limits
    agents: list[Member]


class TeamRemoved(Document):
    removed: list[str]
    schedules: list[str]


class Provider(Document):
    provider: str
    origin: ProviderOrigin
    name: str
    program: str | None
    configured: bool
    base_url: str
    model: str
    agents: list[str]
    installed: bool
    path: str | None
    version: str


class ProviderTested(Document):
    provider: str
    model: str
    ok: bool
    answer: str
    seconds: float
    error: str
    kind: str


class ProviderRemoved(Document):
    removed: list[str]
    agents: list[str]


class Model(Document):
    provider: str
    model: str
    agents: list[str]


class Switch(Document):
    agent: str
    old_provider: str
    old_model: str
    provider: str
    model: str


class Switched(Document):
    changed: bool
    agents: list[Switch]
