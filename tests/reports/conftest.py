"""What the tests of reports share: one Spark session a process, and the classes of all sessions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bullpen.core.files import PRIVATE_DIRECTORY_MODE
from bullpen.core.settings import Settings
from bullpen.reports.spark.class_archive import PREFIX

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
            opening = open_session(self._settings, small=True, record=lambda: None)
            self._session = self._opened.enter_context(opening)
            # Tests have few rows: more tasks would only cost.
            self._session.conf.set("spark.sql.shuffle.partitions", "1")
        return self._session

    def close(self) -> None:
        """Stop it; the next test that asks for it starts another."""
        self._session = None
        self._opened.close()


class ClassArchives:
    """The class archives that the shared sessions write, for the other sessions of the tests."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def lend(self, home: Path) -> None:
        """Give them to a home, whose sessions then start in half the time."""
        theirs = home / "spark"
        theirs.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
        for each in self._directory.glob(f"{PREFIX}*"):
            (theirs / each.name).symlink_to(each)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop the session after the last test that has it, if they are not mixed with others."""
    shared = getattr(item, "funcargs", {}).get("shared_spark")
    wanted = "shared_spark" in getattr(nextitem, "fixturenames", ())
    if shared and not wanted and hasattr(item.config, "workerinput"):
        shared.close()


@pytest.fixture(scope="session")
def spark_home(pytestconfig: pytest.Config) -> Path:
    """The home of the shared sessions, which is kept from one run of the tests to the next."""
    return pytestconfig.cache.mkdir("spark")


@pytest.fixture(scope="session")
def shared_spark(spark_home: Path) -> Iterator[SharedSpark]:
    """The maker of the session."""
    shared = SharedSpark(Settings(home=spark_home))
    yield shared
    shared.close()


@pytest.fixture
def spark(shared_spark: SharedSpark) -> SparkSession:
    """A Spark session that all tests of this process share."""
    return shared_spark.session()


@pytest.fixture(scope="session")
def class_archives(spark_home: Path) -> ClassArchives:
    """What makes the other sessions start faster."""
    return ClassArchives(spark_home / "spark")
