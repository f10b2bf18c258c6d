"""/api/channels: the channels on which people write, their state, pauses and tests."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from bullpen.api.context import read, require_reach, write
from bullpen.api.route import ADMIN, READ, Routes
from bullpen.api.schemas import Answer, Done, JsonColumn, Rows
from bullpen.core.channels.health import pause_channel, resume_channel
from bullpen.core.channels.people import find_owner
from bullpen.core.errors import ServiceFailed, UnknownChannel
from bullpen.core.inspect.channels import ChannelRecord, client_names, get_channel, list_channels
from bullpen.core.message import Answer as NewAnswer
from bullpen.core.outbox.write import send_to_person
from bullpen.core.store.transaction import Transaction

routes = Routes("channels", "Channels: their state, pauses and tests.")

TEST_TEXT = "test"


class ChannelStateAnswer(Answer):
    """A channel, or an account on it."""

    channel: str
    platform: str = Field(description="`slack` of the account `slack-sage`.")
    state: str = Field(
        description="`up`, `degraded`, `down`, `paused`, `starting`, `stopped` or `not set up`."
    )
    since: int | None
    code: str = Field(description="Why it is in this state; empty if it works.")
    reason: str
    hint: str
    missing: list[str] = Field(description="Required settings that are not set.")
    paused: bool
    waiting: int = Field(description="Pairing requests that wait for approval.")
    last_message_at: int | None
    last_sent_at: int | None
    connections: int | None
    caught_up_at: int | None
    caught_up: str | None = Field(description="The result of the last catch-up.")
    last_probe_at: int | None
    probe_ms: int | None
    findings: JsonColumn = Field(description="The answers of the last probe.")


class ChannelList(Rows[ChannelStateAnswer]):
    """Channels."""


class ChannelDone(Done):
    """The channel after the change."""

    channel: ChannelStateAnswer


class ChannelQuery(BaseModel):
    """Selects channels."""

    all: bool = Field(False, description="Include channels that are not set up.")


class ChannelPath(BaseModel):
    """Selects a channel."""

    channel: Annotated[str, Field(max_length=40)]


class TestSent(Done):
    """The response that was stored; GET /api/responses/{id} has its state."""

    __test__ = False

    message_id: str
    to: str


@routes.get("/api/channels", READ)
def channels(query: ChannelQuery) -> ChannelList:
    """List channels and their states."""
    require_reach(None)
    with read() as tx:
        found = list_channels(tx, client_names() if query.all else ())
        return ChannelList.of(_answer(each) for each in found)


@routes.get("/api/channels/<channel>", READ, UnknownChannel)
def channel(path: ChannelPath) -> ChannelStateAnswer:
    """Get one channel."""
    require_reach(None)
    with read() as tx:
        return _answer(get_channel(tx, path.channel))


@routes.post("/api/channels/<channel>/pause", ADMIN, UnknownChannel)
def pause(path: ChannelPath) -> ChannelDone:
    """Pause a channel.

    It neither receives nor sends. Its service keeps running.
    """
    require_reach(None)
    with write() as tx:
        get_channel(tx, path.channel)
        pause_channel(tx, path.channel)
        return _done(tx, path.channel)


@routes.post("/api/channels/<channel>/resume", ADMIN, UnknownChannel)
def resume(path: ChannelPath) -> ChannelDone:
    """End the pause of a channel."""
    require_reach(None)
    with write() as tx:
        get_channel(tx, path.channel)
        resume_channel(tx, path.channel)
        return _done(tx, path.channel)


@routes.post("/api/channels/<channel>/test", ADMIN, UnknownChannel, ServiceFailed)
def test(path: ChannelPath) -> TestSent:
    """Send "test" to the owner on a channel."""
    require_reach(None)
    with write() as tx:
        record = get_channel(tx, path.channel)
        if record.missing:
            raise ServiceFailed(f"{path.channel} is not set up: {record.missing[0]} is not set")
        owner = find_owner(tx, path.channel)
        message_id = send_to_person(
            tx, NewAnswer(message=TEST_TEXT), channel=path.channel, sender="owner", sender_id=owner
        )
        return TestSent(message_id=message_id, to=owner)


def _done(tx: Transaction, name: str) -> ChannelDone:
    return ChannelDone(channel=_answer(get_channel(tx, name)))


def _answer(record: ChannelRecord) -> ChannelStateAnswer:
    return ChannelStateAnswer.from_row(record, missing=list(record.missing))
