"""Shipping: Bullpen's code on the executors of a cluster, and a check of each of them.

The package goes there as a zip file. Everything else must be on each machine: the same minor
version of Python, PyArrow, the driver of the database, and the directory of the reports. Tasks
check this first, because Spark would otherwise fail later and say less.
"""

from __future__ import annotations

import re
import secrets
import shutil
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from bullpen.core.clock import poll_until
from bullpen.core.errors import BullpenError, NotShared, SparkFailed
from bullpen.core.files import PRIVATE_DIRECTORY_MODE
from bullpen.core.settings import Settings
from bullpen.core.store.open import database_file
from bullpen.core.text import SecretMask
from bullpen.reports.facts.read import StoreAddress
from bullpen.reports.spark.executors import SCHEMA, ExecutorCheck, FileIdentity, Finding, Trouble
from bullpen.reports.spark.failures import describe_failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = Path(__file__).resolve().parents[2]
SHIPPED = ("__init__.py", "core/**/*.py", "reports/**/*.py")
"""What tasks import."""
CHECK_TASKS = 16
"""Enough that each executor of a small cluster gets one."""
CHECK_SECONDS = 120.0
SHARED_SECONDS = 10.0
"""How long a network file system may hide a new file."""

_LOST_TASK = re.compile(r"Lost task [^\n]*?\(TID \d+\)[^:]*: (?P<reason>[^\n]{1,400})")

_REASONS = {
    r"different version: (\S+) than that in driver: ([\d.]+)": (
        "the executors have Python {0}, this machine has {1}",
        "Use the same minor version of Python on all machines; PYSPARK_PYTHON is its path there.",
    ),
    r"(?:No module named|requires?) ['\"]?(pyarrow)": (
        "the executors lack the package {0}",
        "Install Bullpen with the extra `reports` on each machine of the cluster.",
    ),
    r'Cannot run program "([^"]+)"': (
        "the executors have no program {0}",
        "Set PYSPARK_PYTHON to the path of Python on the machines of the cluster.",
    ),
}
"""What Spark says of an executor that runs no task of ours, and the error and hint for it."""


def prepare_executors(session: SparkSession, settings: Settings, scratch: Path) -> None:
    """Ship the package, and check each executor.

    The session reads the package from the scratch directory until its end.
    Raises NotShared if an executor does not see the directory or the store, else SparkFailed.
    """
    session.addArtifacts(str(zip_package(scratch)), pyfile=True)
    with _probe_directory(settings.reports) as directory:
        path = database_file(settings)
        identity = path and FileIdentity.of(path)
        check = ExecutorCheck(
            address=StoreAddress(settings.url),
            database=(path.absolute(), identity) if path and identity else None,
            directory=directory,
        )
        for found in _run_check(session, check, settings):
            require_sound(found, directory, settings)


def zip_package(directory: Path) -> Path:
    """Write what tasks import of Bullpen to a file in the directory."""
    path = directory / "bullpen.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for pattern in SHIPPED:
            for each in sorted(PACKAGE.glob(pattern)):
                file.write(each, Path(PACKAGE.name) / each.relative_to(PACKAGE))
    return path


@contextmanager
def _probe_directory(reports: Path) -> Iterator[Path]:
    """A directory in that of the reports, with a file that every executor must see."""
    made = reports / f".probe-{secrets.token_hex(8)}"
    reports.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
    made.mkdir()
    try:
        (made / "driver").touch()
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _run_check(
    session: SparkSession, check: ExecutorCheck, settings: Settings
) -> Sequence[Finding]:
    late = threading.Event()

    def give_up() -> None:
        late.set()
        with suppress(Exception):
            session.interruptAll()

    timer = threading.Timer(CHECK_SECONDS, give_up)
    timer.start()
    try:
        tasks = session.range(0, CHECK_TASKS, 1, CHECK_TASKS)
        rows = tasks.mapInArrow(check, SCHEMA).collect()
    except Exception as error:
        if late.is_set():
            raise SparkFailed(
                f"no executor started within {CHECK_SECONDS:.0f} seconds",
                hint="Check that the cluster has a worker with a free core and 1 GB of memory.",
            ) from error
        raise describe(error, settings) from error
    finally:
        timer.cancel()
    return [Finding(each.host, Trouble(each.problem), each.detail) for each in rows]


def describe(error: Exception, settings: Settings) -> BullpenError:
    """The error for what Spark says."""
    text = str(error)
    for pattern, (reason, hint) in _REASONS.items():
        if found := re.search(pattern, text):
            return SparkFailed(reason.format(*found.groups()), hint=hint)
    lost = _LOST_TASK.search(text)
    reason = lost["reason"] if lost else str(describe_failure(error, settings))
    return SparkFailed(f"no task runs on the cluster: {SecretMask(settings.secrets())(reason)}")


def require_sound(found: Finding, directory: Path, settings: Settings) -> None:
    """Raise what an executor found."""
    host, detail = found.host, found.detail
    match found.trouble:
        case Trouble.PACKAGE:
            raise SparkFailed(
                f"the executor on {host} lacks the package {detail}",
                hint="Install Bullpen with the extra `reports` on each machine of the cluster.",
            )
        case Trouble.OTHER_HOST:
            raise NotShared(
                f"the executor on {host} is on another machine than the SQLite database",
                hint="Use PostgreSQL (`database_url`), or set spark_master to `local[*]`.",
            )
        case Trouble.STORE:
            raise NotShared(
                f"the executor on {host}: {SecretMask(settings.secrets())(detail)}",
                hint="Use a host name in database_url that all machines of the cluster know.",
            )
        case Trouble.DIRECTORY:
            raise NotShared(f"the executor on {host} cannot write to {directory.parent}: {detail}")
        case Trouble.NONE:
            if not poll_until((directory / detail).exists, SHARED_SECONDS, 0.1):
                raise NotShared(f"the executor on {host} has another directory {directory.parent}")
        case _:
            assert_never(found.trouble)
