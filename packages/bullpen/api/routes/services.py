"""/api/services: list, start, stop and restart the services of this home."""

from __future__ import annotations

import logging
import os
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
from bullpen.core.settings.parse import load_lenient
from bullpen.ops.services.add import add_new_services
from bullpen.ops.services.launch import start_lock
from bullpen.ops.services.supervisor import DOWN_STATES, OWN_SERVICES, Service, Supervisor

log = logging.getLogger(__name__)
routes = Routes("services", "The services under the supervisor.")

API = "api"

STOP_SECONDS = 120.0
"""Longer than any service may take to stop before it is killed."""

START_SECONDS = 15.0

WAIT_SECONDS = 15.0
"""How long a request waits for a service. A longer action continues after the response."""

ACTION_ERRORS: tuple[type[BullpenError], ...] = (UnknownService, ServiceFailed, NoSupervisor)


class ServiceAnswer(Answer):
    """A service."""

    name: str
    state: str
    pid: int


class Action(StrEnum):
    """An action on a service."""

    START = "start"
    STOP = "stop"
    RESTART = "restart"


PAST_TENSE = {Action.START: "started", Action.STOP: "stopped", Action.RESTART: "restarted"}


class ServiceList(Rows[ServiceAnswer]):
    """The services; empty if no supervisor answers."""


class ServicePath(BaseModel):
    """Selects a service and an action."""

    name: str = Field(max_length=200)
    action: Action


class ChannelPath(BaseModel):
    """Selects a channel's client and an action."""

    channel: str = Field(max_length=200)
    action: Action


class ServiceActionAnswer(Done):
    """The action, and the present state of the service."""

    name: str
    action: str = Field(description="`started`, `stopped` or `restarted`.")
    state: str


class ChannelActionAnswer(Done):
    """The action, and the present state of the channel's client."""

    channel: str
    action: str = Field(description="`started`, `stopped` or `restarted`.")
    state: str


class Applied(Done):
    """The services that were started."""

    started: list[str]
    errors: list[str] | None = Field(
        None, description="Why services did not start; omitted if all did."
    )


class Restarting(Done):
    """All services are about to restart."""

    action: str = "restart"


@routes.get("/api/services", READ)
def services() -> ServiceList:
    """List the services with states and process ids."""
    require_reach(None)
    return ServiceList.of(known_services() or ())


@routes.post("/api/services/apply", ADMIN, NoSupervisor)
def apply() -> Annotated[Response, Applied]:
    """Start every service that is not running."""
    require_reach(None)
    started = _add_new_services()
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
    """Restart all services, including the API.

    The restart begins after the response.
    """
    require_reach(None)
    api().supervisor.services()
    _audit()
    return _answer_first(Restarting(), api().supervisor.restart_all)


@routes.post("/api/services/channel/<channel>/<action>", ADMIN, *ACTION_ERRORS)
def steer_channel(path: ChannelPath) -> ChannelActionAnswer:
    """Start, stop or restart a channel's client."""
    require_reach(None)
    if path.channel in OWN_SERVICES:
        raise UnknownService(f"{path.channel} is not a channel")
    state = _act(path.channel, path.action)["state"]
    _audit()
    return ChannelActionAnswer(channel=path.channel, action=PAST_TENSE[path.action], state=state)


@routes.post("/api/services/<name>/<action>", ADMIN, *ACTION_ERRORS)
def steer(path: ServicePath) -> Annotated[Response, ServiceActionAnswer]:
    """Start, stop or restart a service.

    The API restarts after the response. It does not stop itself, because no request could start it
    again.
    """
    require_reach(None)
    if path.name == API and path.action is not Action.START:
        state = api().supervisor.service(API)["state"]
        if path.action is Action.STOP:
            raise ServiceFailed("the API cannot stop itself", hint="Use `bullpen down`.")
        _audit()
        done = ServiceActionAnswer(name=API, action=PAST_TENSE[path.action], state=state)
        supervisor = api().supervisor
        return _answer_first(done, lambda: supervisor.signal(API, "TERM"))
    state = _act(path.name, path.action)["state"]
    _audit()
    return as_json(ServiceActionAnswer(name=path.name, action=PAST_TENSE[path.action], state=state))


def known_services() -> list[Service] | None:
    """Return each service and its state; None if no supervisor runs, or it is restarting."""
    try:
        return api().supervisor.services()
    except (NoSupervisor, Overloaded):
        return None


def restart_service(supervisor: Supervisor, name: str, seconds: float) -> Service:
    """Restart a service; a restart that takes longer continues in the background."""
    supervisor.service(name)
    failed: list[BullpenError] = []

    def work() -> None:
        try:
            supervisor.restart(name, STOP_SECONDS, START_SECONDS)
        except BullpenError as error:
            failed.append(error)
            log.error("restarting %s failed: %s", name, error)

    thread = threading.Thread(target=work, name=f"restart {name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    return supervisor.service(name)


def _add_new_services() -> list[str]:
    """Start channels that were set up since the supervisor started; returns their names."""
    settings, _ = load_lenient(os.environ)
    with start_lock(settings, WAIT_SECONDS):
        return add_new_services(settings, api().supervisor)


def _act(name: str, action: Action) -> Service:
    supervisor = api().supervisor
    if action is not Action.STOP and name in _add_new_services():
        return supervisor.start(name, WAIT_SECONDS)
    match action:
        case Action.START:
            return supervisor.start(name, WAIT_SECONDS)
        case Action.STOP:
            return supervisor.stop(name, WAIT_SECONDS)
        case Action.RESTART:
            return restart_service(supervisor, name, WAIT_SECONDS)


def _audit() -> None:
    """Record the action in the audit log."""
    with write():
        pass


def _answer_first(done: BaseModel, then: Callable[[], None]) -> Response:
    """Send the response first, because the action ends this process."""

    def close() -> None:
        try:
            then()
        except BullpenError as error:
            log.error("an action after its response failed: %s", error)

    response = as_json(done)
    response.call_on_close(close)
    return response
