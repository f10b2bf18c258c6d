"""Follow: run the job again and again with one Spark session."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from bullpen.core.errors import ReportsRunning, StoreBusy, StoreUnavailable
from bullpen.core.store.base import Store
from bullpen.reports.job.progress import Outcome, Progress, Step, Tell
from bullpen.reports.job.run import Request, SparkFactory, run_job
from bullpen.reports.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLLOW_SECONDS = 60.0

PASSING = (ReportsRunning, StoreBusy, StoreUnavailable)
"""Errors that the next run may not have."""


def follow(
    store: Store,
    request: Request,
    show: Callable[[Outcome], None],
    *,
    tell: Tell,
    verbose: bool = False,
    seconds: float = FOLLOW_SECONDS,
) -> None:
    """Run the job every so many seconds, until an exception such as SystemExit ends it.

    Spark starts when there is something to compute, and then stays.
    """
    with _one_session(store, verbose=verbose) as spark:
        while True:
            began = time.monotonic()
            try:
                outcome = run_job(store, spark, request, tell=tell)
            except PASSING as error:
                tell(Progress(Step.POSTPONED, text=str(error)))
            else:
                request = Request()
                show(outcome)
            time.sleep(max(0.0, began + seconds - time.monotonic()))


@contextmanager
def _one_session(store: Store, *, verbose: bool) -> Iterator[SparkFactory]:
    """Opens one session for all runs, which the end of the block stops."""
    opened: list[SparkSession] = []
    with ExitStack() as stack:

        @contextmanager
        def open_once(_: bool) -> Iterator[SparkSession]:
            if not opened:
                session = open_session(store.settings, verbose=verbose)
                opened.append(stack.enter_context(session))
            yield opened[0]

        yield open_once
