"""What the tests of reports share: one Spark session a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from bullpen.core.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SharedSpark:
    """The Spark session of this test process, started when a test first asks for it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opened = ExitStack()
        self._session: SparkSession | None = None

    def session(self) -> SparkSession:
        """The session."""
        from bullpen.reports.spark.session import open_session

        if self._session is None:
            self._session = self._opened.enter_context(open_session(self._settings, small=True))
            # Tests have few rows: more tasks would only cost.
            self._session.conf.set("spark.sql.shuffle.partitions", "1")
        return self._session

    def close(self) -> None:
        """Stop it; the next test that asks for it starts another."""
        self._session = None
        self._opened.close()


@pytest.fixture(scope="session")
def shared_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedSpark]:
    """The maker of the session."""
    shared = SharedSpark(Settings(home=tmp_path_factory.mktemp("spark")))
    yield shared
    shared.close()


@pytest.fixture
def spark(shared_spark: SharedSpark) -> SparkSession:
    """A Spark session that all tests of this process share."""
    return shared_spark.session()


@pytest.fixture
def no_spark(shared_spark: SharedSpark) -> None:
    """For a test that starts Spark itself: a process has one session at a time."""
    shared_spark.close()
