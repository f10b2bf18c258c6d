"""What happens to the processes, and to the whole installation."""

from __future__ import annotations

from bullpen.core.events.base import Event, Level, note


class SystemEvent(Event):
    """Something that concerns every team."""


class DeadLettersGrew(SystemEvent):
    """more messages died of the same cause than before"""

    type = "dead_letters_grew"
    level = Level.FAILURE
    says = "many messages die"
    fingerprint: str
    kind: str
    error: str
    deaths: int
    new: int
    agents: list[str]

    @property
    def who(self) -> str:
        """The queue of all agents."""
        return "queue"


class WorkerLost(SystemEvent):
    """a process was not heard of any more, and had not said goodbye"""

    type = "worker_lost"
    level = Level.FAILURE
    says = "was not heard of any more"
    kind: str
    host: str
    pid: int
    silent_seconds: int

    @property
    def who(self) -> str:
        """The kind of process."""
        return self.kind


class SystemAgentFailed(SystemEvent):
    """a [maintenance loop](maintenance.md) failed"""

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
    """Something that happened to a process."""

    worker: str

    @property
    def who(self) -> str:
        """The kind of process."""
        return self.type.partition("_")[0]


class ProcessorStart(ProcessEvent):
    """a processor is ready"""

    type = "processor_start"
    says = "starts"


class ProcessorStop(ProcessEvent):
    """a processor has stopped"""

    type = "processor_stop"
    says = "has stopped"


class SchedulerStart(ProcessEvent):
    """a scheduler is ready"""

    type = "scheduler_start"
    says = "starts"


class SchedulerStop(ProcessEvent):
    """a scheduler has stopped"""

    type = "scheduler_stop"
    says = "has stopped"
