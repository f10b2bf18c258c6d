"""Channels, and the people and groups on them."""

from __future__ import annotations

from pydantic import JsonValue

from tests.cli.schemas.base import Document


class Channel(Document):
    channel: str
    platform: str
    state: str
    since: int | None
    code: str
    reason: str
    hint: str
    missing: list[str]
    paused: bool
    waiting: int
    last_message_at: int | None
    last_sent_at: int | None
    connections: int | None
    caught_up_at: int | None
    caught_up: str | None
    last_probe_at: int | None
    probe_ms: int | None
    findings: JsonValue


class Finding(Document):
    ok: bool
    code: str
    text: str
    hint: str


class SetUp(Document):
    channel: str
    findings: list[Finding]
    changed: list[str]
    started: bool
    restart: list[str]


class Tested(Document):
    channel: str
    to: str
    response: int
    state: str
    error: str | None


class Pairing(Document):
    channel: str
    id: str
    name: str
    kind: str
    tier: str | None
    waiting: bool
    code: str | None
    code_expires_at: int | None
    first_at: int
    last_at: int | None
    approved_at: int | None
    approved_by: str | None


class Unpaired(Document):
    channel: str
    id: str
