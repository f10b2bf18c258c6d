"""Agents with a heartbeat, and what tests ask of them."""

from __future__ import annotations

from typing import Unpack

from bullpen.core.clock import HOUR
from bullpen.core.heartbeats.manage import HeartbeatChange, change_heartbeat, get_heartbeat
from bullpen.core.heartbeats.model import Heartbeat
from bullpen.core.heartbeats.run import send_due_heartbeats
from bullpen.core.models import BEATS
from bullpen.core.store.base import Store
from bullpen.core.workspace.contents import heartbeat_path, write_heartbeat_text
from bullpen.core.workspace.templates import prepare_directory
from tests.conformance.verbs import AGENT, Row, hire, rows
from tests.stores import FakeClock

TEXT = "Look after your work."


def awake(store: Store, agent: str = AGENT, **change: Unpack[HeartbeatChange]) -> str:
    """Hire an agent that is woken each hour, if nothing else is said."""
    hire(store, agent)
    prepare_directory(store.settings, agent)
    heartbeat_path(store.settings, agent).unlink()
    write_heartbeat_text(store.settings, agent, TEXT)
    turn(store, agent, **change)
    turn(store, agent, on=True)
    return agent


def turn(store: Store, agent: str = AGENT, **change: Unpack[HeartbeatChange]) -> Heartbeat:
    """Change its heartbeat."""
    with store.write() as tx:
        return change_heartbeat(tx, agent, **change)


def see(store: Store, agent: str = AGENT) -> Heartbeat:
    """Its heartbeat as it is."""
    with store.read() as tx:
        return get_heartbeat(tx, agent)


def wait(store: Store, clock: FakeClock, milliseconds: int = HOUR) -> None:
    """Let time pass, and the scheduler look."""
    clock.advance(milliseconds)
    while send_due_heartbeats(store) == 0.0:
        pass


def beats(store: Store, agent: str = AGENT) -> list[Row]:
    """What became of its beats."""
    return [row for row in rows(store, BEATS) if row["agent"] == agent]


def outcomes(store: Store, agent: str = AGENT) -> list[str]:
    """The same in a word each."""
    return [str(row["outcome"]) for row in beats(store, agent)]
