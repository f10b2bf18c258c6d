"""/api/services: the processes of this home, their logs, start, stop and restart."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

from flask import Response
from pydantic import BaseModel, Field

from bullpen.api.context import api, require_reach, write
from bullpen.api.route import ADMIN, READ, Routes, as_json
from bullpen.api.schemas import Answer, Done, Rows
from bullpen.core.errors import (
    BullpenError,
    NoSupervisor,
    Overloaded,
    ServiceFailed,
    UnknownService,
)
from bullpen.ops.services.supervisor import CORE_SERVICES, DOWN_STATES, Service, Supervisor

log = logging.getLogger(__name__)
routes = Routes("services", "The services under the supervisor.")

API = "api"

STOP_SECONDS = 120.0
"""Longer than any service may take to stop before it is killed."""

START_SECONDS = 15.0

WAIT_SECONDS = 15.0
"""How long a request waits for a service; what takes longer goes on after the answer."""

ACTION_ERRORS: tuple[type[BullpenError], ...] = (UnknownService, ServiceFailed, NoSupervisor)


class ServiceAnswer(Answer):
    """One service."""

    name: str
    state: str
    pid: int


class Action(StrEnum):
    """What is to be done with a service."""

    START = "start"
    STOP = "stop"
    RESTART = "restart"


PAST_TENSE = {Action.START: "started", Action.STOP: "stopped", Action.RESTART: "restarted"}


class ServiceList(Rows[ServiceAnswer]):
    """The services; none where no supervisor answers."""


class ServicePath(BaseModel):
    """Which service, and what is to be done with it."""

    name: str = Field(max_length=200)
    action: Action


class ChannelPath(BaseModel):
    """Which channel, and what is to be done with its client."""

    channel: str = Field(max_length=200)
    action: Action


class ServiceActionAnswer(Done):
    """It was done, or is being done where the state says so."""

    name: str
    action: str = Field(description="`started`, `stopped` or `restarted`")
    state: str


class ChannelActionAnswer(Done):
    """It was done, or is being done where the state says so."""

    channel: str
    action: str = Field(description="`started`, `stopped` or `restarted`")
    state: str


class Applied(Done):
    """What should run and did not was started."""

    started: list[str]
    errors: list[str] | None = Field(None, description="which did not start; left out for none")


class Restarting(Done):
    """All services are about to stop, and to start anew."""

    action: str = "restart"


@routes.get("/api/services", READ)
def services() -> ServiceList:
    """List the services with their states and process ids."""
    require_reach(None)
    return ServiceList.of(known_services() or ())


@routes.post("/api/services/apply", ADMIN, NoSupervisor)
def apply() -> Annotated[Response, Applied]:
    """Start every service that does not run."""
    require_reach(None)
    started: list[str] = []
    errors: list[str] = []
    for each in api().supervisor.services():
        if each["state"] in DOWN_STATES:
            try:
                api().supervisor.start(each["name"], WAIT_SECONDS)
                started.append(each["name"])
            except (ServiceFailed, UnknownService) as error:
                errors.append(str(error))
    _audit()
    done = Applied(started=started, errors=errors or None)
    return Response(done.model_dump_json(exclude_none=True), mimetype="application/json")


@routes.post("/api/services/restart", ADMIN, NoSupervisor)
def restart_all() -> Annotated[Response, Restarting]:
    """Stop all services and start them anew, this one included, once this is answered."""
    require_reach(None)
    api().supervisor.services()
    _audit()
    return _answer_first(Restarting(), api().supervisor.restart_all)


@routes.post("/api/services/channel/<channel>/<action>", ADMIN, *ACTION_ERRORS)
def steer_channel(path: ChannelPath) -> ChannelActionAnswer:
    """Start, stop or restart a channel's client."""
    require_reach(None)
    if path.channel in CORE_SERVICES:
        raise UnknownService(f"{path.channel} is no channel")
    state = _act(path.channel, path.action)["state"]
    _audit()
    return ChannelActionAnswer(channel=path.channel, action=PAST_TENSE[path.action], state=state)


@routes.post("/api/services/<name>/<action>", ADMIN, *ACTION_ERRORS)
def steer(path: ServicePath) -> Annotated[Response, ServiceActionAnswer]:
    """Start, stop or restart a service.

    The API restarts once this is answered. It does not stop itself: nobody could ask it to start.
    """
    require_reach(None)
    if path.name == API and path.action is not Action.START:
        state = api().supervisor.service(API)["state"]
        if path.action is Action.STOP:
            raise ServiceFailed("the API does not stop itself", hint="Use `bullpen down`.")
        _audit()
        done = ServiceActionAnswer(name=API, action=PAST_TENSE[path.action], state=state)
        supervisor = api().supervisor
        return _answer_first(done, lambda: supervisor.signal(API, "TERM"))
    state = _act(path.name, path.action)["state"]
    _audit()
    return as_json(ServiceActionAnswer(name=path.name, action=PAST_TENSE[path.action], state=state))


def known_services() -> list[Service] | None:
    """Each service and its state; None where there is no supervisor, or it is busy restarting."""
    try:
        return api().supervisor.services()
    except (NoSupervisor, Overloaded):
        return None


def restart_service(supervisor: Supervisor, name: str, seconds: float) -> Service:
    """Restart a service; a restart that takes longer than this goes on in the background."""
    supervisor.service(name)
    failed: list[BullpenError] = []

    def work() -> None:
        try:
            supervisor.restart(name, STOP_SECONDS, START_SECONDS)
        except BullpenError as error:
            failed.append(error)
            log.error("%s was to be restarted: %s", name, error)

    thread = threading.Thread(target=work, name=f"restart {name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    return supervisor.service(name)


def _act(name: str, action: Action) -> Service:
    supervisor = api().supervisor
    match action:
        case Action.START:
            return supervisor.start(name, WAIT_SECONDS)
        case Action.STOP:
            return supervisor.stop(name, WAIT_SECONDS)
        case Action.RESTART:
            return restart_service(supervisor, name, WAIT_SECONDS)


def _audit() -> None:
    """Record in the audit log that it was done."""
    with write():
        pass


def _answer_first(done: BaseModel, then: Callable[[], None]) -> Response:
    """Answer first, because what follows ends this process."""

    def close() -> None:
        try:
            then()
        except BullpenError as error:
            log.error("what was to follow an answer failed: %s", error)

    response = as_json(done)
    response.call_on_close(close)
    return response
