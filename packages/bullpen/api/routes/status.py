"""Status of the services and the queue, the logs, and the maintenance loops."""

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
from bullpen.ops.services.supervisor import DOWN_STATES, OWN_SERVICES

routes = Routes("status", "Status, logs and maintenance loops.")


class ServerAnswer(Answer):
    """The API."""

    running: bool = True
    port: int


class ChannelAnswer(Answer):
    """A channel's client."""

    running: bool
    pid: int | None


class HeartbeatsAnswer(CamelAnswer):
    """The heartbeats of all agents."""

    running: bool = Field(description="Whether any heartbeat is on.")
    interval: int = Field(description="The shortest interval in seconds; 0: never.")
    last_sent: dict[str, int] = Field(description="Time of the last heartbeat of each agent.")

    @classmethod
    def of(cls, heartbeats: Iterable[Heartbeat]) -> HeartbeatsAnswer:
        """Return the heartbeats of the agents that the caller reaches."""
        mine = [each for each in heartbeats if caller().can_reach(each.agent)]
        every = [each.every for each in mine if each.state is HeartbeatState.ON]
        return cls(
            running=bool(every),
            interval=min(every, default=0) // SECOND,
            last_sent={each.agent: each.last_at for each in mine if each.last_at is not None},
        )


class QueueAnswer(Answer):
    """Counts of the queue, for the agents that the key reaches."""

    pending: int
    processing: int
    dead: int | None = Field(description="Null if the key does not reach all agents.")
    held: int | None = Field(description="Null if the key does not reach all agents.")
    outgoing: int | None = Field(description="Null if the key does not reach all agents.")

    @classmethod
    def of(cls, status: QueueStatus) -> QueueAnswer:
        """Return the part of the queue that the caller may see."""
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
    """The status of Bullpen."""

    version: str
    uptime: int = Field(description="Uptime of this API process in seconds.")
    server: ServerAnswer
    channels: dict[str, ChannelAnswer]
    heartbeat: HeartbeatsAnswer
    supervised: bool = Field(description="Whether a supervisor answers.")
    services: list[ServiceAnswer]
    queue: QueueAnswer
    workers: dict[str, int] = Field(description="Number of live worker processes by kind.")


class LogQuery(BaseModel):
    """Selects the end of a log."""

    limit: int = Field(100, ge=1, le=1000, description="Maximum number of lines.")
    service: str = Field("processor", max_length=200)


class LogAnswer(Answer):
    """The last lines of a log, oldest first."""

    lines: list[str]


class SystemAgentAnswer(Answer):
    """A maintenance loop; fields about its last run are null before its first run."""

    name: str
    every_seconds: int
    last_run_at: int | None
    last_duration: int | None = Field(description="In milliseconds.")
    last_result: str | None
    last_error: str | None
    next_run_at: int | None
    failures: int = Field(description="Failed runs in a row.")
    holder: str | None = Field(description="The process that runs it now.")
    running_since: int | None


class SystemAgentList(Rows[SystemAgentAnswer]):
    """The maintenance loops."""


@routes.get("/api/status", READ)
def status() -> StatusAnswer:
    """Get the status of the services and the queue."""
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
            if each["name"] not in OWN_SERVICES
        },
        heartbeat=HeartbeatsAnswer.of(heartbeats),
        supervised=services is not None,
        services=[ServiceAnswer.from_row(each) for each in services or ()],
        queue=QueueAnswer.of(queue),
        workers=workers,
    )


@routes.get("/api/logs", ADMIN, UnknownService)
def logs(query: LogQuery) -> LogAnswer:
    """Get the last lines of a service's log, with secrets hidden."""
    require_reach(None)
    return LogAnswer(lines=read_log_tail(api().settings, query.service, query.limit, _secrets()))


@routes.get("/api/system-agents", READ)
def loops() -> SystemAgentList:
    """List the maintenance loops with their last runs."""
    require_reach(None)
    with read() as tx:
        return SystemAgentList.of(list_job_statuses(tx))


def _secrets() -> list[str]:
    """Return all secrets of this home, also those from the start of this process."""
    with read() as tx:
        custom = list_custom_providers(tx)
    secrets = [secret for each in custom for secret in (each.api_key, *url_secrets(each.base_url))]
    secrets += api().settings.secrets()
    with suppress(BadSetting):
        secrets += SettingsFile(api().settings.home, os.environ).secrets()
    with suppress(OSError, UnsafeSecret):
        secrets.append(read_token(api().settings))
    return secrets
