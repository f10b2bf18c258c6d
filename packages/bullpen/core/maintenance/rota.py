"""The rota: which system agents there are, and how often each runs."""

from __future__ import annotations

from bullpen.core.maintenance.archive import archive_finished
from bullpen.core.maintenance.archived import delete_archived
from bullpen.core.maintenance.attempts import delete_attempts
from bullpen.core.maintenance.checkpoint import checkpoint
from bullpen.core.maintenance.dead_letters import watch_dead_letters
from bullpen.core.maintenance.deadlines import run_all_timers
from bullpen.core.maintenance.deliveries import end_stale_deliveries
from bullpen.core.maintenance.due_times import delete_schedule_history
from bullpen.core.maintenance.events import delete_events
from bullpen.core.maintenance.files import delete_unused_files
from bullpen.core.maintenance.gathered import send_due_aggregates
from bullpen.core.maintenance.history import delete_history
from bullpen.core.maintenance.leases import recover_expired_claims
from bullpen.core.maintenance.progress import delete_progress
from bullpen.core.maintenance.receipts import delete_receipts
from bullpen.core.maintenance.space import reclaim_space
from bullpen.core.maintenance.system_agent import MaintenanceJob
from bullpen.core.maintenance.workers import check_workers

JOBS: tuple[MaintenanceJob, ...] = (
    MaintenanceJob("leases", 5, recover_expired_claims),
    MaintenanceJob("gathered", 5, send_due_aggregates),
    MaintenanceJob("deadlines", 60, run_all_timers),
    MaintenanceJob("deliveries", 60, end_stale_deliveries),
    MaintenanceJob("archive", 60, archive_finished),
    MaintenanceJob("archived", 3600, delete_archived),
    MaintenanceJob("events", 3600, delete_events),
    MaintenanceJob("progress", 3600, delete_progress),
    MaintenanceJob("attempts", 3600, delete_attempts),
    MaintenanceJob("history", 3600, delete_history),
    MaintenanceJob("due_times", 3600, delete_schedule_history),
    MaintenanceJob("receipts", 3600, delete_receipts),
    MaintenanceJob("files", 3600, delete_unused_files),
    MaintenanceJob("workers", 60, check_workers),
    MaintenanceJob("dead_letters", 60, watch_dead_letters),
    MaintenanceJob("checkpoint", 10, checkpoint),
    MaintenanceJob("space", 600, reclaim_space),
)
