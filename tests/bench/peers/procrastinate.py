"""Procrastinate as a peer: deferred synchronously, worked on asynchronously."""

import asyncio
from typing import Any, Final

from . import stopwatch
from .library import load
from .payload import PAYLOAD

SCHEMA: Final = "peer_procrastinate"
CONCURRENCY: Final = 10


class ProcrastinatePeer:
    """Defers through SyncPsycopgConnector and works through PsycopgConnector.

    Both get a pool of our own, as documented for `open`: without the check of the connection
    before each query, and in autocommit mode, as all its queries are single statements.
    """

    def __init__(self, url: str) -> None:
        """Create a fresh schema, open both apps and register a worker."""
        self.name = "procrastinate"
        self._procrastinate = load("procrastinate")
        self._pools = load("psycopg_pool")
        self._options = {"options": f"-c search_path={SCHEMA}", "autocommit": True}
        self._worked = 0
        with load("psycopg").connect(url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
            connection.execute(f"CREATE SCHEMA {SCHEMA}")
        self._runner = asyncio.Runner()
        self._runner.run(self._open(url))

    def cycle(self, count: int) -> list[float]:
        """Defer one job, then fetch, run and finish it as its worker does."""
        finished = self._runner.run(self._finished()) + count
        seconds = self._runner.run(stopwatch.laps_async(count, self._one))
        self._verify(finished)
        return seconds

    def batch(self, count: int, size: int) -> float:
        """Defer jobs with `batch_defer`, then run a worker until none is left."""
        finished = self._runner.run(self._finished()) + count
        seconds = self._runner.run(stopwatch.total_async(1, 1, lambda _: self._many(count, size)))
        self._verify(finished)
        return seconds

    def close(self) -> None:
        """Close both apps, their pools and the event loop."""
        self._runner.run(self._close())
        self._runner.close()

    async def _open(self, url: str) -> None:
        self._producer = self._procrastinate.App(
            connector=self._procrastinate.SyncPsycopgConnector()
        )
        self._producer_pool = self._pools.ConnectionPool(
            conninfo=url, kwargs=self._options, min_size=1, max_size=1, open=False
        )
        self._producer_pool.open(wait=True)
        self._producer.open(self._producer_pool)
        self._producer.schema_manager.apply_schema()
        self._task = self._producer.task(name="work")(self._work)
        self._worker = self._procrastinate.App(connector=self._procrastinate.PsycopgConnector())
        self._worker_pool = self._pools.AsyncConnectionPool(
            conninfo=url, kwargs=self._options, min_size=4, max_size=4, open=False
        )
        await self._worker_pool.open(wait=True)
        await self._worker.open_async(self._worker_pool)
        self._worker.task(name="work")(self._work)
        self._jobs = self._worker.job_manager
        self._worker_id = await self._jobs.register_worker()
        self._succeeded = load("procrastinate.jobs").Status.SUCCEEDED

    async def _close(self) -> None:
        await self._jobs.unregister_worker(self._worker_id)
        await self._worker.close_async()
        await self._worker_pool.close()
        self._producer.close()
        self._producer_pool.close()

    async def _work(self, payload: str) -> None:
        if payload != PAYLOAD:
            raise ValueError("procrastinate changed the payload")
        self._worked += 1

    async def _one(self) -> None:
        self._task.defer(payload=PAYLOAD)
        job = await self._jobs.fetch_job(queues=None, worker_id=self._worker_id)
        if job is None:
            raise RuntimeError("procrastinate had no job to fetch")
        await self._worker.tasks[job.task_name](**job.task_kwargs)
        await self._jobs.finish_job(job, self._succeeded, delete_job=False)

    async def _many(self, count: int, size: int) -> None:
        for portion in stopwatch.portions(count, size):
            self._task.batch_defer(*[{"payload": PAYLOAD}] * portion)
        await self._worker.run_worker_async(
            wait=False,
            concurrency=CONCURRENCY,
            listen_notify=False,
            install_signal_handlers=False,
        )

    async def _finished(self) -> int:
        row: dict[str, Any] = await self._worker.connector.execute_query_one_async(
            "SELECT count(*) AS finished FROM procrastinate_jobs WHERE status = 'succeeded'"
        )
        return int(row["finished"])

    def _verify(self, finished: int) -> None:
        found = self._runner.run(self._finished())
        if (found, self._worked) != (finished, finished):
            message = f"procrastinate finished {found} jobs, ran {self._worked}, of {finished}"
            raise RuntimeError(message)
