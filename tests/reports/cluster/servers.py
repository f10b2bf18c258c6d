"""A standalone cluster and a server of Spark Connect, on loopback, for one module of tests each."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests.ports import free_port

START_SECONDS = 120.0
STOP_SECONDS = 30.0
WORKERS = 2
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"

# A process of Spark must not outlive the tests, however these end: the shell reads a pipe whose
# other end they hold.
GUARD = """
exec 3<&0
{command} >{log} 2>&1 </dev/null 3<&- & child=$!
{{ cat <&3 >/dev/null; kill $child 2>/dev/null; }} &
wait $child
"""


def spark_home() -> Path:
    """The directory of Spark."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@contextmanager
def running(
    name: str, arguments: list[str], directory: Path, memory: str = "256m"
) -> Iterator[Callable[[], bool]]:
    """Run a program of Spark; gives what says whether it still runs."""
    command = shlex.join([str(spark_home() / "bin" / name), *arguments])
    log = directory / f"{name}-{arguments[0].rpartition('.')[2]}-{free_port()}.log"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("SPARK_")},
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": memory,
        "SPARK_DAEMON_JAVA_OPTS": f"{QUICK} -Dspark.master.rest.enabled=false",
        "SPARK_WORKER_OPTS": f"-Dspark.worker.cleanup.enabled=true -Djava.io.tmpdir={directory}",
        "SPARK_LOCAL_DIRS": str(directory),
        "PYSPARK_PYTHON": sys.executable,
    }
    script = GUARD.format(command=command, log=shlex.quote(str(log)))
    guard = subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, cwd=directory, env=environment
    )
    try:
        yield lambda: guard.poll() is None
    finally:
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait(STOP_SECONDS)


def wait_for_port(port: int, runs: Callable[[], bool]) -> None:
    """Wait until a program listens on its port."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert runs(), "the program ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port}")


@contextmanager
def standalone_cluster(directory: Path, workers: int = WORKERS) -> Iterator[str]:
    """A master and workers of one core; gives the address of the master."""
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    host = ["--host", "127.0.0.1", "--webui-port", "0"]
    with ExitStack() as stack:
        deploy = "org.apache.spark.deploy"
        arguments = [f"{deploy}.master.Master", *host, "--port", str(port)]
        runs = stack.enter_context(running("spark-class", arguments, directory))
        work = ["--cores", "1", "--memory", "1g", "--work-dir", str(directory / "work")]
        for _ in range(workers):
            arguments = [f"{deploy}.worker.Worker", *host, *work, master]
            stack.enter_context(running("spark-class", arguments, directory))
        wait_for_port(port, runs)
        yield master


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """A server of Spark Connect that computes with two threads; gives its address."""
    port = free_port()
    options: Mapping[str, str] = {
        "spark.master": "local[2]",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": QUICK,
    }
    arguments = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in options.items():
        arguments += ["--conf", f"{name}={value}"]
    with running("spark-submit", [*arguments, "spark-internal"], directory, "640m") as runs:
        wait_for_port(port, runs)
        yield f"sc://127.0.0.1:{port}"
