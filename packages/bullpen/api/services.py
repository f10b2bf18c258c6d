"""The services as the supervisor knows them, for the routes that show and steer them."""

from __future__ import annotations

import logging
import threading

from pydantic import BaseModel

from bullpen.api.context import api
from bullpen.core.errors import BullpenError, NoSupervisor, Overloaded
from bullpen.core.services.supervisor import Service, Supervisor

log = logging.getLogger(__name__)

STOP_SECONDS = 120.0
"""Longer than any service may take to stop before it is killed."""

START_SECONDS = 15.0


class ServiceAnswer(BaseModel):
    """One service."""

    name: str
    state: str
    pid: int

    @classmethod
    def of(cls, service: Service) -> ServiceAnswer:
        """The service, as it is shown."""
        return cls(name=service["name"], state=service["state"], pid=service["pid"])


def known_services() -> list[Service] | None:
    """Each service and its state; None where there is no supervisor, or it is busy restarting."""
    try:
        return api().supervisor.services()
    except (NoSupervisor, Overloaded):
        return None


def restart_service(supervisor: Supervisor, name: str, seconds: float) -> Service:
    """Restart a service; where that takes longer than this time, it goes on without who asked."""
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
