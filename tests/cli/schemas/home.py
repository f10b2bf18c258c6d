"""The home itself: its settings, database, keys and services."""

from __future__ import annotations

from pydantic import JsonValue

from bullpen.core.access.keys import KeyKind, Scope
from tests.cli.schemas.base import Document
from tests.cli.schemas.channels import Channel
from tests.cli.schemas.queue import Hold


class Setting(Document):
    name: str
    value: JsonValue
    default: JsonValue
    doc: str
    source: str
    secret: bool
    fixed: str | None
    problem: str | None


class SettingsPath(Document):
    path: str
    exists: bool
    backup: str | None


class Problem(Document):
    line: int | None
    name: str
    text: str
    hint: str
    warning: bool
    where: str


class SettingsChecked(Document):
    path: str
    exists: bool
    ok: bool
    problems: list[Problem]


class Change(Document):
    before: JsonValue
    after: JsonValue


class SettingsChanged(Document):
    changed: dict[str, Change]
    path: str
    restart: list[str]


class DatabaseChecked(Document):
    revision: str
    good: bool
    differences: list[str]


class DatabaseUpgraded(Document):
    revision: str
    before: str | None
    backup: str | None


class BackedUp(Document):
    path: str
    made_at: int
    size: int
    kind: str
    revision: str
    with_workspace: bool
    files: int
    rows: dict[str, int]
    removed: list[str]


class Verified(Document):
    path: str
    good: bool
    damages: list[str]
    made_at: int
    revision: str
    version: str
    kind: str
    with_workspace: bool
    size: int
    files: int
    rows: dict[str, int]


class Restored(Document):
    home: str
    made_at: int
    revision: str
    before: str
    rows: dict[str, int]
    files: int
    claims: int
    deliveries: int
    keys: int
    with_workspace: bool
    held: bool


class NothingHeld(Document):
    held: bool
    let_go: bool


class LetGo(NothingHeld):
    reason: str
    since: int
    responses: int
    set_aside: int
    channels: dict[str, int]
    schedules: int
    heartbeats: int


class Check(Document):
    id: str
    severity: str
    state: str
    text: str
    remedy: str
    fixable: bool


class Fixed(Document):
    id: str
    steps: list[str]
    backup: str
    error: str


class Examination(Document):
    home: str
    checks: list[Check]
    counts: dict[str, int]
    fixed: list[Fixed]


class Key(Document):
    id: str
    kind: KeyKind
    name: str
    scopes: list[Scope]
    agents: list[str] | None
    created_at: int
    expires_at: int | None
    used_at: int | None
    revoked_at: int | None
    made_by: str | None
    valid: bool


class NewKey(Key):
    key: str


class KeysRevoked(Document):
    revoked: list[str]


class Link(Document):
    url: str
    minutes: int


class LogLine(Document):
    service: str
    line: str


class Service(Document):
    name: str
    state: str
    pid: int
    seconds: int
    started_at: int


class Up(Document):
    running_already: bool
    failed: list[str]
    api: str | None
    services: list[Service]


class Restarted(Document):
    failed: list[str]
    services: list[Service]


class Down(Document):
    stopped: bool


class LaneCounts(Document):
    agent: str
    state: str
    reason: str | None
    pending: int
    processing: int
    worker: str | None
    lease_expires_at: int | None


class Queue(Document):
    pending: int
    processing: int
    dead: int
    held: int
    outgoing: int
    lanes: list[LaneCounts]


class SystemAgent(Document):
    name: str
    every_seconds: float
    next_run_at: int | None
    last_run_at: int | None
    last_duration: int | None
    last_result: str | None
    last_error: str | None
    failures: int
    holder: str | None
    running_since: int | None


class Status(Document):
    services: list[Service]
    api: str | None
    queue: Queue | None
    system_agents: list[SystemAgent] | None
    channels: list[Channel] | None
    unread: int | None
    held_back: Hold | None


class Probe(Document):
    provider: str
    model: str
    ok: bool
    answer: str
    seconds: float
    error: str
    kind: str


class SetUp(Document):
    provider: str
    probe: Probe | None
    agent: str
    model: str
    team: str | None
    changed: list[str]
    settings: list[str]
    test: JsonValue


class TokenPath(Document):
    path: str
    exists: bool


class Token(TokenPath):
    rights: str | None
    problem: str | None
    token: str | None


class TokenRotated(Token):
    revoked: list[str]


class WrittenHistory(Document):
    home: str
    seed: int
    since: int
    until: int
    rows: dict[str, int]


class Version(Document):
    version: str
