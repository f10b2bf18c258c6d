"""The rota: which system agents there are, and how often each runs."""

from __future__ import annotations

from bullpen.core.maintenance.archive import archive
from bullpen.core.maintenance.archived import archived
from bullpen.core.maintenance.attempts import attempts
from bullpen.core.maintenance.checkpoint import checkpoint
from bullpen.core.maintenance.dead_letters import dead_letters
from bullpen.core.maintenance.deadlines import deadlines
from bullpen.core.maintenance.deliveries import deliveries
from bullpen.core.maintenance.due_times import due_times
from bullpen.core.maintenance.events import events
from bullpen.core.maintenance.files import files
from bullpen.core.maintenance.gathered import gathered
from bullpen.core.maintenance.history import history
from bullpen.core.maintenance.leases import leases
from bullpen.core.maintenance.progress import progress
from bullpen.core.maintenance.receipts import receipts
from bullpen.core.maintenance.space import space
from bullpen.core.maintenance.system_agent import SystemAgent
from bullpen.core.maintenance.workers import workers

ROTA: tuple[SystemAgent, ...] = (
    SystemAgent("leases", 5, leases),
    SystemAgent("gathered", 5, gathered),
    SystemAgent("deadlines", 60, deadlines),
    SystemAgent("deliveries", 60, deliveries),
    SystemAgent("archive", 60, archive),
    SystemAgent("archived", 3600, archived),
    SystemAgent("events", 3600, events),
    SystemAgent("progress", 3600, progress),
    SystemAgent("attempts", 3600, attempts),
    SystemAgent("history", 3600, history),
    SystemAgent("due_times", 3600, due_times),
    SystemAgent("receipts", 3600, receipts),
    SystemAgent("files", 3600, files),
    SystemAgent("workers", 60, workers),
    SystemAgent("dead_letters", 60, dead_letters),
    SystemAgent("checkpoint", 10, checkpoint),
    SystemAgent("space", 600, space),
)
