"""Events of processes, and of the whole installation."""

from __future__ import annotations

from bullpen.core.events.base import Event, Level, note


class SystemEvent(Event):
    """An event that live views show for every team."""


class DeadLettersGrew(SystemEvent):
    """More messages failed with the same cause"""

    type = "dead_letters_grew"
    level = Level.FAILURE
    says = "has more dead letters with one cause"
    fingerprint: str
    kind: str
    error: str
    deaths: int
    new: int
    agents: list[str]

    @property
    def who(self) -> str:
        """The queue."""
        return "queue"


class WorkerLost(SystemEvent):
    """A worker was not seen for a minute and had not stopped cleanly"""

    type = "worker_lost"
    level = Level.FAILURE
    says = "on {host} was last seen {silent_seconds} s ago"
    kind: str
    host: str
    pid: int
    silent_seconds: int

    @property
    def who(self) -> str:
        """The kind of process."""
        return self.kind


class SystemAgentFailed(SystemEvent):
    """A [maintenance job](maintenance.md) failed"""

    type = "system_agent_failed"
    level = Level.FAILURE
    says = "failed"
    name: str
    error: str
    failures: int = note("in a row")

    @property
    def who(self) -> str:
        """The maintenance job."""
        return self.name


class ProcessEvent(SystemEvent):
    """An event about a process."""

    worker: str

    @property
    def who(self) -> str:
        """The kind of process."""
        return self.type.partition("_")[0]


class ProcessorStart(ProcessEvent):
    """A processor is ready"""

    type = "processor_start"
    says = "started"
    bookkeeping = True


class ProcessorStop(ProcessEvent):
    """A processor stopped"""

    type = "processor_stop"
    says = "stopped"


class SchedulerStart(ProcessEvent):
    """A scheduler is ready"""

    type = "scheduler_start"
    says = "started"
    bookkeeping = True


class SchedulerStop(ProcessEvent):
    """A scheduler stopped"""

    type = "scheduler_stop"
    says = "stopped"
