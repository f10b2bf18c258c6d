"""Session: the Spark that computes the reports, on this machine or on a cluster.

| spark_master | what computes |
|---|---|
| `local[*]`, `local[4]` | a Java process below this one, with as many threads as cores, or 4 |
| `spark://HOST:PORT` | the executors of a standalone cluster; a Java process here drives them |
| `sc://HOST:PORT` | a server of Spark Connect; there is no Java process here |
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bullpen.core.errors import NoSpark, SparkFailed
from bullpen.core.files import PRIVATE_DIRECTORY_MODE
from bullpen.core.settings import Settings
from bullpen.reports.spark.class_archive import RECORD_SECONDS, ClassArchive
from bullpen.reports.spark.java import find_java
from bullpen.reports.spark.jvm import (
    STOP_SECONDS,
    Jvm,
    changed_environment,
    quiet_gateway,
    scratch_directory,
)
from bullpen.reports.spark.shipping import prepare_executors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPLICATION = "bullpen report"
DRIVER_MEMORY = "512m"
LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 5.0
CONNECT_RETRIES = 6
"""About a minute."""
STANDALONE_PORT = 7077
CONNECT_PORT = 15002
GC = "-XX:+UseParallelGC"
"""Nobody waits for a pause: the concurrent collector would take more CPU."""
LATE_C2 = (
    "-XX:Tier4BackEdgeThreshold=1000000",
    "-XX:Tier4MinInvocationThreshold=10000",
    "-XX:Tier4InvocationThreshold=80000",
    "-XX:Tier4CompileThreshold=200000",
)
"""Optimise only what runs long: each query is code of its own, and most of it runs for a second.

It halves the CPU of the optimising compiler in a full run of 5 million attempts, 35 of 143 seconds
without. With three times these numbers the run as a whole is slower again.
"""
C1_ONLY = "-XX:TieredStopAtLevel=1"
"""Compiles fast and optimises little: half the CPU of a small run, twice that of a full one."""

SESSION_OPTIONS = {
    "spark.sql.session.timeZone": "UTC",
    # Spark would list more files in a job of its own.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    # With more groups, Spark sorts the rows before it collects the values of percentiles, at twice
    # the CPU. A task reads few enough rows for all of its groups.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "20000",
}
"""What every session has; the others are those of a process that starts, or of a run."""

SMALL_OPTIONS = {
    # Planning each stage again costs more than it saves if there are few rows.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": str(min(4, len(os.sched_getaffinity(0)))),
    "spark.sql.files.maxPartitionBytes": "128m",
}
FULL_OPTIONS = {
    # The groups of a task must fit into its memory, whatever the number of rows: read and shuffle
    # in small parts. Spark merges those with few rows.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "32",
    "spark.sql.files.maxPartitionBytes": "32m",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
}

FOREIGN_VARIABLES = ("SPARK_", "PYSPARK_", "HADOOP_", "YARN_")
"""What the environment may say about other uses of Spark."""
CONNECT_VARIABLES = ("SPARK_REMOTE", "SPARK_CONNECT_", "SPARK_API_MODE", "PYSPARK_SUBMIT_ARGS")
"""What would make another session of one on a cluster."""


@contextmanager
def open_session(
    settings: Settings,
    *,
    small: bool = False,
    verbose: bool = False,
    record: Callable[[], None] | None = None,
) -> Iterator[SparkSession]:
    """Start Spark, or connect to it; the end of the block stops what was started.

    `small` is for few rows: it starts fast and computes slowly. `verbose` prints the log of Spark
    on stderr. `record` lets the end of the block write the class archive if there is none, and is
    called before that. A process has one session at a time.
    """
    if missing := [each for each in ("pyspark", "pyarrow") if find_spec(each) is None]:
        raise NoSpark(f"there is no package {' or '.join(missing)}")
    master = Master(settings.spark_master)
    directory = settings.home.absolute() / "spark"
    directory.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
    with ExitStack() as stack:
        scratch = stack.enter_context(scratch_directory(directory))
        if master.is_connect:
            session = stack.enter_context(_connect(master))
        else:
            started = _start(master, settings, scratch, small=small, verbose=verbose, record=record)
            session = stack.enter_context(started)
        if not master.is_local:
            prepare_executors(session, settings, scratch)
        tune_session(session, small=small)
        _silence_pyspark()
        yield session


def tune_session(session: SparkSession, *, small: bool) -> None:
    """Prepare a session, which may be of an earlier run, for a run with few rows or with many."""
    for name, value in (SMALL_OPTIONS if small else FULL_OPTIONS).items():
        session.conf.set(name, value)


def _silence_pyspark() -> None:
    """Keep PySpark from printing the errors of queries, which are reported anyway."""
    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


@dataclass(frozen=True, slots=True)
class Master:
    """Where Spark runs, by the setting `spark_master`."""

    url: str

    @property
    def is_local(self) -> bool:
        """Whether Spark computes in the Java process below this one."""
        return self.url.startswith("local")

    @property
    def is_connect(self) -> bool:
        """Whether it is a server of Spark Connect."""
        return self.url.startswith("sc://")

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The hosts and ports that may answer: a standalone cluster can have several masters."""
        scheme, _, rest = self.url.partition("://")
        parsed = [urlsplit(f"//{each.partition(';')[0]}") for each in rest.split(",")]
        default = CONNECT_PORT if scheme == "sc" else STANDALONE_PORT
        return [(each.hostname or "", each.port or default) for each in parsed]

    def find_own_address(self) -> str:
        """Return this machine's address on the network of the master.

        Raises SparkFailed if no master accepts a connection, because Spark would try for minutes.
        """
        if self.is_local:
            return LOOPBACK
        reasons = []
        for host, port in self.addresses:
            try:
                with socket.create_connection((host, port), CONNECT_SECONDS) as connection:
                    return str(connection.getsockname()[0])
            except OSError as error:
                reasons.append(f"{host}:{port}: {error.strerror or error}")
        raise SparkFailed(
            f"cannot connect to Spark at {'; '.join(reasons)}",
            hint="Start the cluster, or run `bullpen config set spark_master 'local[*]'`.",
        )


@contextmanager
def _connect(master: Master) -> Iterator[SparkSession]:
    """Connect to a server of Spark Connect, and release its session at the end."""
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    master.find_own_address()
    with changed_environment(CONNECT_VARIABLES, {"SPARK_CONNECT_MODE_ENABLED": "1"}):
        session = SparkSession.builder.remote(master.url).create()
        try:
            session.client.set_retry_policies([DefaultPolicy(max_retries=CONNECT_RETRIES)])
            for name, value in SESSION_OPTIONS.items():
                session.conf.set(name, value)
        except Exception as error:
            session.stop()
            host, port = master.addresses[0]
            reason = str(error).partition("\n")[0]
            raise SparkFailed(f"no session of Spark Connect at {host}:{port}: {reason}") from error
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def _start(
    master: Master,
    settings: Settings,
    scratch: Path,
    *,
    small: bool,
    verbose: bool,
    record: Callable[[], None] | None,
) -> Iterator[SparkSession]:
    """Start a Java process that computes, or drives a standalone cluster."""
    address = master.find_own_address()
    java = find_java(os.environ, scratch.parent)
    spark_home = _find_spark_home()
    archive = ClassArchive.find(java, spark_home / "jars", scratch.parent)
    with ExitStack() as stack:
        recorded: Path | None = None
        if record and stack.enter_context(archive.lock(settings.free_bytes_floor)):
            recorded = scratch / archive.path.name
        java_options = ["-XX:-UsePerfData", GC, f"-Djava.io.tmpdir={scratch}"]
        if recorded:
            java_options.append(archive.recording(recorded))
        elif archive.exists():
            java_options.append(archive.reading)
        java_options += [C1_ONLY] if small else LATE_C2
        removed = FOREIGN_VARIABLES if master.is_local else CONNECT_VARIABLES
        python = sys.executable if master.is_local else os.environ.get("PYSPARK_PYTHON")
        variables = {
            "BULLPEN_HOME": str(settings.home.absolute()),
            "JAVA_HOME": str(java.home),
            "SPARK_HOME": str(spark_home),
            "SPARK_LOCAL_IP": address,
            "PYSPARK_PYTHON": python or sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        stack.enter_context(changed_environment(removed, variables))
        if not verbose:
            stack.enter_context(quiet_gateway())
        options = {
            **SESSION_OPTIONS,
            **_process_options(scratch, address, verbose=verbose),
            **({"spark.authenticate": "true"} if master.is_local else {}),
            "spark.executor.extraJavaOptions": C1_ONLY if small else "",
            "spark.master": master.url,
            "spark.driver.extraJavaOptions": " ".join(map(_quote, java_options)),
        }
        jvm = Jvm(
            options,
            scratch,
            verbose=verbose,
            stop_seconds=RECORD_SECONDS if recorded else STOP_SECONDS,
        )
        try:
            yield jvm.session
            if record and recorded:
                record()
        finally:
            complete = jvm.stop()
        if recorded and complete:
            archive.keep(recorded)


def _process_options(scratch: Path, address: str, *, verbose: bool) -> Mapping[str, str]:
    """The options of a Java process. They are among its arguments: no secret may be in them."""
    return {
        "spark.app.name": APPLICATION,
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.log.level": "WARN" if verbose else "ERROR",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        # It looks for the line of the caller at each operation on a column.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }


def _quote(option: str) -> str:
    """An option of Java for Spark, which splits them at spaces: a home may contain one."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _find_spark_home() -> Path:
    """The directory of the package pyspark, which contains Spark."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
