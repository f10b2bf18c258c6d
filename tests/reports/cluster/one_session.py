"""Opens a Spark session as the environment says, and computes until a signal ends it.

`python -m tests.reports.cluster.one_session`
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bullpen.core.settings import Settings
from bullpen.reports.spark.session import open_session

if TYPE_CHECKING:
    import pyarrow as pa


def compute_for_hours(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task that does not end."""
    for batch in batches:
        time.sleep(3600)
        yield batch


def main() -> None:
    """Compute, first something and then for hours."""
    handler = signal.getsignal(signal.SIGINT)
    before = dict(os.environ)
    try:
        with open_session(Settings.load(os.environ), small=True) as spark:
            assert signal.getsignal(signal.SIGINT) is handler
            assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
            rows = spark.range(0, 10, 1, 2)
            assert rows.count() == 10
            print(f"java {os.environ['JAVA_HOME']}", flush=True)
            rows.mapInArrow(compute_for_hours, "id BIGINT").count()
    except KeyboardInterrupt:
        assert os.environ == before
        print("interrupted", flush=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
