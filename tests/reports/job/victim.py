"""A process that runs the job on a home and kills itself at a step of it."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.reports.job.progress import Progress, Step
from bullpen.reports.job.run import run_job
from bullpen.reports.spark.session import open_session
from tests.reports.job.facts import BOTH


def main(home: str, url: str, step: str) -> None:
    """Run the job until the step."""
    settings = Settings(home=Path(home), database_url=url, time_zone="UTC")

    def tell(progress: Progress) -> None:
        if progress.step is Step(step):
            os.kill(os.getpid(), signal.SIGKILL)

    with closing(open_store(settings)) as store:
        run_job(store, lambda _: open_session(settings, small=True), tell=tell, reports=BOTH)


if __name__ == "__main__":
    main(*sys.argv[1:])
