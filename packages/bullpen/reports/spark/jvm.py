"""Jvm: the Java process that runs Spark on this machine, or that drives a cluster.

It ends with this process, however that ends: it reads a pipe whose other end closes. What it
prints goes to a file, and so does what the Python processes below it print.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bullpen.core.errors import SparkFailed
from bullpen.core.files import file_lock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_SECONDS = 30.0
STDERR = 2
MAX_REASON_CHARS = 400


class Jvm:
    """A Java process, and the session of Spark in it."""

    session: SparkSession

    def __init__(
        self, options: Mapping[str, str], directory: Path, *, verbose: bool, stop_seconds: float
    ) -> None:
        """Start it in this directory; the options are the configuration of Spark.

        `verbose` lets its output through to stderr. It is killed if it needs longer to stop.
        """
        from pyspark.conf import SparkConf
        from pyspark.core.context import SparkContext
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession

        self._stop_seconds = stop_seconds
        conf = SparkConf(loadDefaults=False)
        for name, value in options.items():
            conf.set(name, value)
        with tempfile.TemporaryFile(dir=directory) as output:
            pipes = {"stdout": STDERR} if verbose else {"stdout": output, "stderr": output}
            try:
                self._gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    conf, {**pipes, "cwd": directory}
                )
            except Exception as error:
                raise SparkFailed(f"cannot start Java: {_last_line(output) or error}") from error
            self._process: subprocess.Popen[bytes] = self._gateway.proc
            try:
                with _same_handler():
                    context = SparkContext(conf=conf, gateway=self._gateway)
                    self.session = SparkSession(context)
            except BaseException as error:
                self._end()
                if not isinstance(error, Exception):
                    raise
                raise SparkFailed(f"cannot start Spark: {_first_line(error)}") from error

    @property
    def pid(self) -> int:
        """The id of the Java process."""
        return self._process.pid

    def stop(self) -> bool:
        """Stop Spark, then the process; returns whether it ended normally."""
        try:
            with warnings.catch_warnings():
                # After a Ctrl-C, PySpark may be unable to reach the process, and warns.
                warnings.simplefilter("ignore", RuntimeWarning)
                self.session.stop()
        finally:
            self._end()
        return self._process.returncode == 0

    def _end(self) -> None:
        from pyspark.core.context import SparkContext

        SparkContext._gateway = None  # the next context starts a process of its own
        SparkContext._jvm = None
        try:
            self._gateway.shutdown()
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(self._stop_seconds)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()


@contextmanager
def changed_environment(removed: tuple[str, ...], added: Mapping[str, str]) -> Iterator[None]:
    """Change the environment of this process, and at the end undo all changes since.

    Removes the variables that begin with one of the prefixes. PySpark sets some as well.
    """
    before = dict(os.environ)
    try:
        for name in before:
            if name.startswith(removed):
                del os.environ[name]
        os.environ.update(added)
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def scratch_directory(parent: Path) -> Iterator[Path]:
    """Create a directory for the files of a session; those of killed sessions are deleted."""
    with ExitStack() as stack:
        with file_lock(parent):
            for each in parent.glob("session-*"):
                with file_lock(each, 0) as held:
                    if held is not None:
                        shutil.rmtree(each, ignore_errors=True)
            made = Path(tempfile.mkdtemp(prefix="session-", dir=parent))
            stack.callback(shutil.rmtree, made, ignore_errors=True)
            stack.enter_context(file_lock(made))
        yield made


@contextmanager
def quiet_gateway() -> Iterator[None]:
    """Drop what the library below PySpark logs, such as the traceback of a Ctrl-C."""
    root, own = logging.getLogger(), logging.getLogger("py4j")
    level = own.level
    root.addFilter(_is_not_of_gateway)  # it also logs without a logger of its own
    own.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        root.removeFilter(_is_not_of_gateway)
        own.setLevel(level)


def _is_not_of_gateway(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


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
    """The last line that the process printed, apart from the stack of an exception."""
    output.seek(0)
    lines = [each.strip() for each in output.read().decode(errors="replace").splitlines()]
    said = [each for each in lines if each and not each.startswith(("at ", "..."))]
    return said[-1][:MAX_REASON_CHARS] if said else ""


def _first_line(error: Exception) -> str:
    """What an exception says in its first line; of one of Java, without its stack."""
    cause = getattr(error, "java_exception", None)
    text = str(error) if cause is None else cause.toString()
    return text.strip().partition("\n")[0][:MAX_REASON_CHARS]
