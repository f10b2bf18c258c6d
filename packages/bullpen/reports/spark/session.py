"""Session: the Spark that computes the reports, on this machine or on a cluster.

`local[*]` starts a JVM below this process, which listens on the loopback address only and ends
with the process, however that ends. Its output goes to a file that is deleted.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bullpen.core.errors import NoSpark, SparkFailed
from bullpen.core.files import PRIVATE_DIRECTORY_MODE, file_lock
from bullpen.core.settings import Settings
from bullpen.reports.spark.java import Java, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPLICATION = "bullpen report"
DRIVER_MEMORY = "512m"
STOP_SECONDS = 30
CONNECT = "sc://"
C1_ONLY = "-XX:TieredStopAtLevel=1"
"""Compiles fast and optimises little: half the CPU of a small run, twice that of a full one."""


@contextmanager
def open_session(
    settings: Settings, *, small: bool = False, verbose: bool = False
) -> Iterator[SparkSession]:
    """Start Spark, or connect to it, and stop or leave it at the end.

    `small` is for a run with few rows: it starts fast and computes slowly. `verbose` prints the
    log of Spark on stderr. One process has one session at a time.
    """
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise NoSpark("Spark is not installed: the package pyspark or pyarrow is missing")
    with ExitStack() as stack:
        if settings.spark_master.startswith(CONNECT):
            yield stack.enter_context(_connected(settings))
        else:
            yield stack.enter_context(_started(settings, small=small, verbose=verbose))


SESSION_OPTIONS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
}
"""What a session of Spark Connect can set too."""


@contextmanager
def _connected(settings: Settings) -> Iterator[SparkSession]:
    """A session of Spark Connect."""
    from pyspark.sql import SparkSession

    with _environment({"SPARK_CONNECT_MODE_ENABLED": "1"}):
        session = SparkSession.builder.remote(settings.spark_master).create()
        try:
            for name, value in SESSION_OPTIONS.items():
                session.conf.set(name, value)
            yield session
        finally:
            with suppress(Exception):
                session.stop()


@contextmanager
def _started(settings: Settings, *, small: bool, verbose: bool) -> Iterator[SparkSession]:
    """A session of a JVM below this process."""
    from pyspark.conf import SparkConf
    from pyspark.core.context import SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    directory = settings.home / "spark"
    directory.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
    java = find_java(os.environ, directory)
    with ExitStack() as stack:
        scratch = stack.enter_context(_scratch(directory))
        output = stack.enter_context(tempfile.TemporaryFile(dir=scratch))
        conf = SparkConf(loadDefaults=False)
        for name, value in _options(settings, java, scratch, small=small).items():
            conf.set(name, value)
        stack.enter_context(_environment(_variables(java)))
        pipes = {} if verbose else {"stdout": output, "stderr": output}
        try:
            gateway = launch_gateway(conf, {**pipes, "cwd": scratch})  # type: ignore[no-untyped-call]
            stack.callback(_end, gateway)
            with _same_handler():
                context = SparkContext(conf=conf, gateway=gateway)
        except Exception as error:
            raise SparkFailed(f"Spark did not start: {_last_line(output) or error}") from error
        stack.callback(context.stop)
        yield SparkSession(context)


def _options(settings: Settings, java: Java, scratch: Path, *, small: bool) -> Mapping[str, str]:
    """The configuration of Spark. It is in the arguments of the JVM: no secret may be in it."""
    java_options = ["-XX:-UsePerfData", f"-Djava.io.tmpdir={scratch}"]
    if small:
        java_options.append(C1_ONLY)
    return {
        **SESSION_OPTIONS,
        "spark.app.name": APPLICATION,
        "spark.master": settings.spark_master,
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(java_options),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.shuffle.partitions": str(len(os.sched_getaffinity(0))),
    }


def _variables(java: Java) -> Mapping[str, str]:
    """The environment of the JVM and of PySpark."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(Path(spec.origin).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process, and restore what PySpark sets as well."""
    before = dict(os.environ)
    try:
        for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_SUBMIT_ARGS"):
            os.environ.pop(name, None)
        os.environ.update(variables)
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def _same_handler() -> Iterator[None]:
    """Keep the handler of Ctrl-C, which PySpark replaces."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not handler:
            signal.signal(signal.SIGINT, handler)


def _last_line(output: IO[bytes]) -> str:
    """The last line that Spark printed."""
    output.seek(0)
    lines = output.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


@contextmanager
def _scratch(directory: Path) -> Iterator[Path]:
    """A directory for the files of one session; those of killed sessions are deleted."""
    with ExitStack() as stack:
        with file_lock(directory):
            for each in directory.glob("session-*"):
                with file_lock(each, 0) as held:
                    if held is not None:
                        shutil.rmtree(each, ignore_errors=True)
            made = Path(tempfile.mkdtemp(prefix="session-", dir=directory))
            stack.callback(shutil.rmtree, made, ignore_errors=True)
            stack.enter_context(file_lock(made))
        yield made


def _end(gateway: Any) -> None:  # noqa: ANN401 - py4j has no types
    """Stop the JVM, which ends when its stdin is closed."""
    from pyspark.core.context import SparkContext

    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(STOP_SECONDS)
    SparkContext._gateway = None
    SparkContext._jvm = None
