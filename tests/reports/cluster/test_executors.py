"""The check of an executor, and what a person is told of its findings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bullpen.core.errors import BullpenError, NotShared, SparkFailed
from bullpen.core.settings import Settings
from bullpen.reports.facts.read import StoreAddress
from bullpen.reports.spark import executors, shipping
from bullpen.reports.spark.executors import ExecutorCheck, FileIdentity, Finding, Trouble
from bullpen.reports.spark.shipping import require_sound, zip_package
from tests.ports import free_port
from tests.stores import Stores

PASSWORD = "planted-password-4711"


@pytest.fixture
def settings(stores: Stores) -> Settings:
    return stores.settings("sqlite")


@pytest.fixture
def directory(settings: Settings) -> Path:
    """What the driver prepares in the directory of the reports."""
    made = settings.reports / ".probe"
    made.mkdir(parents=True)
    (made / "driver").touch()
    return made


def check(settings: Settings, directory: Path, identity: FileIdentity | None = None) -> Finding:
    path = settings.home / "bullpen.db"
    known = identity or FileIdentity.of(path)
    assert known is not None
    return ExecutorCheck(StoreAddress(settings.url), (path, known), directory).run()


def error_of(found: Finding, settings: Settings, directory: Path) -> BullpenError:
    with pytest.raises(BullpenError) as raised:
        require_sound(found, directory, settings)
    return raised.value


def test_an_executor_that_sees_everything_is_sound(settings: Settings, directory: Path) -> None:
    found = check(settings, directory)
    assert found.trouble is Trouble.NONE
    require_sound(found, directory, settings)


def test_sqlite_on_another_machine_is_refused(settings: Settings, directory: Path) -> None:
    found = check(settings, directory, FileIdentity("another boot", 1, 2))
    error = error_of(found, settings, directory)
    assert isinstance(error, NotShared)
    assert "PostgreSQL" in error.hint


def test_a_directory_that_is_not_shared_is_named(
    settings: Settings, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unseen = check(settings, directory.parent / ".other")
    error = error_of(unseen, settings, directory)
    assert isinstance(error, NotShared)
    assert str(settings.reports) in str(error)
    assert "reports_directory" in error.hint
    # The executor wrote its file to a directory of the same name.
    monkeypatch.setattr(shipping, "SHARED_SECONDS", 0.0)
    elsewhere = Finding("h", Trouble.NONE, "h-1")
    assert isinstance(error_of(elsewhere, settings, directory), NotShared)


def test_a_database_that_an_executor_cannot_reach_is_an_error_without_its_password(
    settings: Settings, directory: Path
) -> None:
    url = f"postgresql://bullpen:{PASSWORD}@127.0.0.1:{free_port()}/nowhere"
    found = ExecutorCheck(StoreAddress(url), None, directory).run()
    error = error_of(found, settings, directory)
    assert isinstance(error, NotShared)
    assert "cannot connect to PostgreSQL" in str(error)
    assert PASSWORD not in str(error)


def test_a_missing_driver_is_named(
    settings: Settings, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "find_spec", lambda _: None)
    error = error_of(check(settings, directory), settings, directory)
    assert isinstance(error, SparkFailed)
    assert "lacks the package adbc-driver-sqlite" in str(error)


SAID = {
    "Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run": (
        "the executors have Python 3.12, this machine has 3.11"
    ),
    "ModuleNotFoundError: No module named 'pyarrow'": "the executors lack the package pyarrow",
    'Cannot run program "/opt/python": error=2': "the executors have no program /opt/python",
    "o1.x\n Lost task 2.3 in stage 0.0 (TID 8) (h executor 0): java.Bad: it": "java.Bad: it",
}


def test_what_spark_says_of_an_executor_becomes_a_plain_reason(settings: Settings) -> None:
    wrong = {
        said: str(error)
        for said, reason in SAID.items()
        if reason not in str(error := shipping.describe(RuntimeError(said), settings))
    }
    assert not wrong


def test_tasks_can_import_what_is_shipped_without_any_other_package(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from bullpen.reports.spark import executors\nfrom bullpen.reports.job import land\n"
        "assert executors.__file__.startswith(sys.argv[1]), executors.__file__"
    )
    subprocess.run(
        [sys.executable, "-S", "-c", code, str(zip_package(tmp_path))], check=True, timeout=60
    )
