"""Schedules and heartbeats."""

from __future__ import annotations

from pydantic import PositiveInt

from bullpen.core.heartbeats.model import HeartbeatState
from bullpen.core.schedules.model import OverlapPolicy, ScheduleState
from bullpen.core.schedules.timing import MissedPolicy, TimingKind
from bullpen.core.states import MessageState, ResponseState
from tests.cli.schemas.base import Document


class Schedule(Document):
    id: str
    label: str | None
    message: str
    agent: str | None
    team_id: str | None
    sender: str
    missed: MissedPolicy
    overlap: OverlapPolicy
    jitter: int
    state: ScheduleState
    reason: str | None
    due_at: int | None
    made_by: str
    created_at: int
    updated_at: int
    kind: TimingKind
    cron: str | None
    every: int | None
    at: int | None
    zone: str
    to: str
    meaning: str
    next: list[int]


class Delivery(Document):
    response: int
    channel: str
    status: ResponseState
    receipts: list[str]
    acked_at: int | None
    error: str | None


class ScheduleRun(Document):
    id: int
    due_at: int | None
    until: int | None
    fired_at: int
    outcome: str
    times: int
    message_id: str | None
    reason: str | None
    state: MessageState | None
    error: str | None
    cost: float
    tokens: int
    deliveries: list[Delivery]


class ScheduleAsked(Document):
    schedule: str
    message_id: str


class SchedulesRemoved(Document):
    removed: list[str]


class Heartbeat(Document):
    agent: str
    state: HeartbeatState
    reason: str | None
    every: int
    hours: str | None
    budget: int
    max_silent: int
    silent: int
    errors: int
    due_at: int | None
    last_at: int | None
    created_at: PositiveInt
    updated_at: PositiveInt
    to: str
    next: int | None
    left_today: int


class HeartbeatSent(Document):
    agent: str
    message_id: str


class HeartbeatShown(Heartbeat):
    path: str
    text: str


class Beat(Document):
    id: int
    agent: str
    due_at: int
    fired_at: int
    outcome: str
    message_id: str | None
    reason: str | None
