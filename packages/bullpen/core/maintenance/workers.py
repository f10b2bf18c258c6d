"""Strikes processes out of the register that were not heard of, and says who is left."""

from __future__ import annotations

import logging

from bullpen.core.events.append import EventType, append_event
from bullpen.core.queue.claim import has_claimable
from bullpen.core.store.base import Store
from bullpen.core.workers import count_live_workers, delete_lost_workers

log = logging.getLogger(__name__)

PROCESSOR_KIND = "processor"


def check_workers(store: Store) -> str:
    """Forget the silent, and warn if messages wait for nobody."""
    with store.write(durable=False) as tx:
        alive = count_live_workers(tx)
        if not alive:
            # Whoever runs this is in the register: all were silent, for the machine slept.
            return "nobody was heard of: they are asked once more"
        lost = delete_lost_workers(tx)
        for each in lost:
            append_event(
                tx,
                EventType.WORKER_LOST,
                kind=each.kind,
                host=each.host,
                pid=each.pid,
                silent_seconds=each.silent_seconds,
            )
        waiting = has_claimable(tx)
    for each in lost:
        log.warning(
            "a %s is lost: process %d on %s was not heard of for %d s",
            *(each.kind, each.pid, each.host, each.silent_seconds),
        )
    if waiting and PROCESSOR_KIND not in alive:
        log.warning("messages wait, and no processor is alive: bullpen up, or bullpen status")
    found = ", ".join(f"{count} {kind}" for kind, count in alive.items())
    return f"{found}; {len(lost)} lost"
