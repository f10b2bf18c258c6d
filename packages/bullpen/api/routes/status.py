"""What runs and how it fares: the services, the queue, the logs and the maintenance."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from pydantic import BaseModel, Field

from bullpen import __version__
from bullpen.api.context import api, caller, read, require_reach
from bullpen.api.route import ADMIN, READ, Routes
from bullpen.api.routes.services import ServiceAnswer, known_services
from bullpen.api.schemas import Answer, CamelAnswer, Done, Rows
from bullpen.core.access.owner import read_token
from bullpen.core.background import count_live_workers
from bullpen.core.clock import SECOND
from bullpen.core.errors import BadSetting, UnknownService, UnsafeSecret
from bullpen.core.heartbeats.manage import list_heartbeats
from bullpen.core.heartbeats.model import Heartbeat, HeartbeatState
from bullpen.core.inspect.queue import QueueStatus, queue_status
from bullpen.core.logs import read_log_tail
from bullpen.core.maintenance.jobs import list_job_statuses
from bullpen.core.roster.providers import list_custom_providers
from bullpen.core.settings.file import SettingsFile
from bullpen.core.text import url_secrets
from bullpen.ops.services.supervisor import CORE_SERVICES, DOWN_STATES

routes = Routes("status", "What runs, and how it fares.")


class ServerAnswer(Answer):
    """This process."""

    running: bool = True
    port: int


class ChannelAnswer(Answer):
    """A channel's client."""

    running: bool
    pid: int | None


class HeartbeatsAnswer(CamelAnswer):
    """What is sent to agents so that they do something by themselves."""

    running: bool = Field(description="whether any agent is woken")
    interval: int = Field(description="the shortest, in seconds; 0 is never")
    last_sent: dict[str, int] = Field(description="when each agent was woken last")

    @classmethod
    def of(cls, heartbeats: Iterable[Heartbeat]) -> HeartbeatsAnswer:
        """The heartbeats of the agents that the caller reaches."""
        mine = [each for each in heartbeats if caller().can_reach(each.agent)]
        every = [each.every for each in mine if each.state is HeartbeatState.ON]
        return cls(
            running=bool(every),
            interval=min(every, default=0) // SECOND,
            last_sent={each.agent: each.last_at for each in mine if each.last_at is not None},
        )


class QueueAnswer(Answer):
    """The queue in numbers, of the agents that the key reaches."""

    pending: int
    processing: int
    dead: int | None = Field(description="null where the key does not reach all agents")
    held: int | None = Field(description="null where the key does not reach all agents")
    outgoing: int | None = Field(description="null where the key does not reach all agents")

    @classmethod
    def of(cls, status: QueueStatus) -> QueueAnswer:
        """The part of the queue that the caller may see."""
        lanes = [lane for lane in status.lanes if caller().can_reach(lane.agent)]
        everything = caller().can_reach(None)
        return cls(
            pending=sum(lane.pending for lane in lanes),
            processing=sum(lane.processing for lane in lanes),
            dead=status.dead if everything else None,
            held=status.held if everything else None,
            outgoing=status.outgoing if everything else None,
        )


class StatusAnswer(Done):
    """How Bullpen fares."""

    version: str
    uptime: int = Field(description="of this process, in seconds")
    server: ServerAnswer
    channels: dict[str, ChannelAnswer]
    heartbeat: HeartbeatsAnswer
    supervised: bool = Field(description="whether a supervisor answers")
    services: list[ServiceAnswer]
    queue: QueueAnswer
    workers: dict[str, int] = Field(description="processes that were heard of lately, by kind")


class LogQuery(BaseModel):
    """Which part of which log."""

    limit: int = Field(100, ge=1, le=1000, description="how many lines at the most")
    service: str = Field("processor", max_length=200)


class LogAnswer(Answer):
    """The end of a log, the oldest line first."""

    lines: list[str]


class SystemAgentAnswer(Answer):
    """A maintenance loop. What is null has not come to pass yet."""

    name: str
    every_seconds: int
    last_run_at: int | None
    last_duration: int | None = Field(description="in milliseconds")
    last_result: str | None
    last_error: str | None
    next_run_at: int | None
    failures: int = Field(description="how often it failed in a row")
    holder: str | None = Field(description="the process that runs it at this moment")
    running_since: int | None


class SystemAgentList(Rows[SystemAgentAnswer]):
    """The maintenance loops."""


@routes.get("/api/status", READ)
def status() -> StatusAnswer:
    """Say what runs and how much there is to do."""
    services = known_services()
    with read() as tx:
        queue = queue_status(tx)
        workers = count_live_workers(tx)
        heartbeats = list_heartbeats(tx)
        now = tx.now
    return StatusAnswer(
        version=__version__,
        uptime=(now - api().started_at) // SECOND,
        server=ServerAnswer(port=api().settings.api_port),
        channels={
            each["name"]: ChannelAnswer(
                running=each["state"] not in DOWN_STATES, pid=each["pid"] or None
            )
            for each in services or ()
            if each["name"] not in CORE_SERVICES
        },
        heartbeat=HeartbeatsAnswer.of(heartbeats),
        supervised=services is not None,
        services=[ServiceAnswer.from_row(each) for each in services or ()],
        queue=QueueAnswer.of(queue),
        workers=workers,
    )


@routes.get("/api/logs", ADMIN, UnknownService)
def logs(query: LogQuery) -> LogAnswer:
    """Show the last lines of a service's log; secrets are hidden in them."""
    require_reach(None)
    return LogAnswer(lines=read_log_tail(api().settings, query.service, query.limit, _secrets()))


@routes.get("/api/system-agents", READ)
def loops() -> SystemAgentList:
    """List the maintenance loops: when each ran last, and what it did."""
    require_reach(None)
    with read() as tx:
        return SystemAgentList.of(list_job_statuses(tx))


def _secrets() -> list[str]:
    """Every secret of this home, of now and of when this process started."""
    with read() as tx:
        custom = list_custom_providers(tx)
    secrets = [secret for each in custom for secret in (each.api_key, *url_secrets(each.base_url))]
    secrets += api().settings.secrets()
    with suppress(BadSetting):
        secrets += SettingsFile(api().settings.home, os.environ).secrets()
    with suppress(OSError, UnsafeSecret):
        secrets.append(read_token(api().settings))
    return secrets
