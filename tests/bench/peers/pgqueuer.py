"""PgQueuer as a peer, on its asyncpg driver."""

import asyncio
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from . import stopwatch
from .library import load
from .payload import PAYLOAD

SCHEMA: Final = "peer_pgqueuer"
ENTRYPOINT: Final = "work"
HEARTBEAT: Final = timedelta(seconds=30)


class PgQueuerPeer:
    """Makes the queries that its QueueManager makes, on one connection and uvloop.

    uvloop is what its command line and its own benchmark run on. Every list given to
    `enqueue`, `dequeue` and `log_jobs` is one transaction.
    """

    def __init__(self, url: str) -> None:
        """Connect and install PgQueuer into a fresh schema."""
        self.name = "pgqueuer"
        self._runner = asyncio.Runner(loop_factory=load("uvloop").new_event_loop)
        self._runner.run(self._open(url))

    def cycle(self, count: int) -> list[float]:
        """Enqueue one job, dequeue it and log it as successful."""
        finished = self._runner.run(self._logged()) + count
        seconds = self._runner.run(stopwatch.laps_async(count, self._one))
        self._verify(finished)
        return seconds

    def batch(self, count: int, size: int) -> float:
        """Enqueue, dequeue and log `size` jobs at once."""
        finished = self._runner.run(self._logged()) + count
        seconds = self._runner.run(stopwatch.total_async(count, size, self._many))
        self._verify(finished)
        return seconds

    def close(self) -> None:
        """Close the connection and the event loop."""
        self._runner.run(self._connection.close())
        self._runner.close()

    async def _open(self, url: str) -> None:
        self._connection: Any = await load("asyncpg").connect(url)
        await self._connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        builder = load("pgqueuer.adapters.persistence.qb")
        settings = builder.DBSettings(db_schema=SCHEMA)
        self._queries: Any = load("pgqueuer.queries").Queries(
            load("pgqueuer.db").AsyncpgDriver(self._connection),
            qbe=builder.QueryBuilderEnvironment(settings),
            qbq=builder.QueryQueueBuilder(settings),
            qbs=builder.QuerySchedulerBuilder(settings),
        )
        await self._queries.install()
        parameter = load("pgqueuer.queries").EntrypointExecutionParameter
        self._entrypoints = {ENTRYPOINT: parameter(concurrency_limit=0)}
        self._manager_id = uuid4()

    async def _one(self) -> None:
        await self._queries.enqueue(ENTRYPOINT, PAYLOAD.encode())
        await self._finish(1)

    async def _many(self, size: int) -> None:
        await self._queries.enqueue([ENTRYPOINT] * size, [PAYLOAD.encode()] * size, [0] * size)
        await self._finish(size)

    async def _finish(self, size: int) -> None:
        jobs = await self._queries.dequeue(
            batch_size=size,
            entrypoints=self._entrypoints,
            queue_manager_id=self._manager_id,
            global_concurrency_limit=None,
            heartbeat_timeout=HEARTBEAT,
        )
        if len(jobs) != size:
            raise RuntimeError(f"pgqueuer dequeued {len(jobs)} jobs in place of {size}")
        await self._queries.log_jobs([(job, "successful", None) for job in jobs])

    async def _logged(self) -> int:
        query = f"SELECT count(*) FROM {SCHEMA}.pgqueuer_log WHERE status = 'successful'"
        return int(await self._connection.fetchval(query))

    async def _left(self) -> int:
        return int(await self._connection.fetchval(f"SELECT count(*) FROM {SCHEMA}.pgqueuer"))

    def _verify(self, finished: int) -> None:
        found, left = self._runner.run(self._logged()), self._runner.run(self._left())
        if found != finished or left:
            raise RuntimeError(f"pgqueuer logged {found} of {finished} jobs and left {left}")
