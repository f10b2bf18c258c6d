"""The job on a standalone cluster and by Spark Connect: the same as on this machine."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from bullpen.core.clock import poll_until
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.reports.job.parquet import read_parquet
from tests.api.served import serving
from tests.reports.cluster.drive import RANGE
from tests.reports.cluster.servers import connect_server, standalone_cluster
from tests.reports.conftest import ClassArchives, SharedSpark
from tests.reports.job.facts import SPRING, write_history
from tests.reports.job.jobs import fact_files, manifest, results, run
from tests.stores import Stores

if TYPE_CHECKING:
    pass

ROOT = Path(__file__).resolve().parents[3]
Found = tuple[dict[str, list[tuple[Any, ...]]], dict[str, list[tuple[Any, ...]]]]
"""The facts and the results of a run, by table."""
RUN_SECONDS = 120.0
PASSWORD = "planted-password-4711"
ROWS = 60


@pytest.fixture(scope="module")
def settings(stores: Stores, class_archives: ClassArchives) -> Settings:
    """A database with a history; its URL has a password, which the server does not ask for."""
    made = stores.settings("postgresql", time_zone="Europe/Berlin")
    made = replace(made, database_url=made.url.replace("bullpen@", f"bullpen:{PASSWORD}@"))
    class_archives.lend(made.home)
    with closing(open_store(made)) as store:
        write_history(store, random.Random(3), SPRING, ROWS)
    return made


class Watch:
    """What processes below this one show to others: arguments, and listeners beyond loopback."""

    def __init__(self) -> None:
        self.arguments: set[str] = set()
        self.exposed: set[str] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(2):
            for process in psutil.Process().children(recursive=True):
                try:
                    self.arguments.add(" ".join(process.cmdline()))
                    connections = process.net_connections("inet")
                except psutil.Error:
                    continue
                for each in connections:
                    if each.status == psutil.CONN_LISTEN and not is_loopback(each.laddr.ip):
                        self.exposed.add(f"{process.name()} {each.laddr}")


def is_loopback(address: str) -> bool:
    return address.removeprefix("::ffff:").startswith("127.") or address == "::1"


def drive(settings: Settings) -> str:
    """Run the job in a process of its own; gives all that it prints."""
    environment = {
        **os.environ,
        "BULLPEN_HOME": str(settings.home),
        "BULLPEN_DATABASE_URL": settings.url,
        "BULLPEN_SPARK_MASTER": settings.spark_master,
        "BULLPEN_REPORTS_DIRECTORY": str(settings.reports_directory),
        "BULLPEN_TIME_ZONE": settings.time_zone,
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.reports.cluster.drive"],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    by_source = f"rows {ROWS - 3}" in done.stdout
    assert by_source == settings.spark_master.startswith("sc://")
    assert f"ranges {3 * ROWS // RANGE}" in done.stdout
    return done.stdout + done.stderr


def facts(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of the fact tables, in the order of their ids."""
    return {
        table: sorted(
            tuple(row.values())
            for file in fact_files(store, table)
            for row in read_parquet(file).to_pylist()
        )
        for table in manifest(store).facts
    }


def check_same_as_here(settings: Settings, master: str, directory: Path, here: Found) -> None:
    """The facts and the results of a run there are those of a run here, and nothing leaks."""
    there = replace(settings, spark_master=master, reports_directory=directory / "reports")
    with Watch() as watch:
        printed = drive(there)
    with closing(open_store(there)) as store:
        assert (facts(store), results(store)) == here
    assert not watch.exposed
    assert not [each for each in watch.arguments if PASSWORD in each]
    assert PASSWORD not in printed
    written = [each for each in directory.rglob("*") if each.is_file()]
    assert not [str(each) for each in written if PASSWORD.encode() in each.read_bytes()]


@pytest.fixture(scope="module")
def here(settings: Settings, shared_spark: SharedSpark) -> Found:
    """The facts and the results of a run on this machine."""
    with closing(open_store(settings)) as store:
        run(store, shared_spark.session())
        return facts(store), results(store)


@pytest.mark.long
@pytest.mark.postgres
def test_a_standalone_cluster_gives_the_same_as_this_machine(
    settings: Settings, here: Found, tmp_path: Path
) -> None:
    with standalone_cluster(tmp_path) as master:
        check_same_as_here(settings, master, tmp_path, here)


@pytest.mark.long
@pytest.mark.postgres
def test_spark_connect_gives_the_same_as_this_machine_also_over_http(
    settings: Settings, here: Found, tmp_path: Path
) -> None:
    with connect_server(tmp_path) as master:
        check_same_as_here(settings, master, tmp_path, here)
        # Once more by the API, on the server that is warm: no other Java is started.
        directory = tmp_path / "served"
        there = replace(settings, spark_master=master, reports_directory=directory)
        check_run_over_http(there, here)


def check_run_over_http(settings: Settings, here: Found) -> None:
    """`POST /api/reports/run` computes every report, and says when it is done."""
    environ = {
        "BULLPEN_SPARK_MASTER": settings.spark_master,
        "BULLPEN_REPORTS_DIRECTORY": str(settings.reports_directory),
        "BULLPEN_TIME_ZONE": settings.time_zone,
    }
    with serving(settings, **environ) as served:
        assert served.get("/api/reports/run")["state"] == "never"
        response = served.ask("POST", "/api/reports/run")
        assert (response.status_code, response.json()["state"]) == (202, "running")
        assert served.refused("POST", "/api/reports/run") == (409, "reports_running")
        poll_until(lambda: served.get("/api/reports/run")["state"] != "running", RUN_SECONDS, 0.5)
        ended = served.get("/api/reports/run")
        assert (ended["state"], ended["error"]) == ("completed", None)
        assert ended["started_at"] <= ended["finished_at"]
        listed = {each["name"]: each for each in served.get("/api/reports")}
        fresh = {name: each["freshness"] for name, each in listed.items()}
        assert {each["error"] for each in fresh.values()} == {None}
        assert {each["covers_until"] >= ended["started_at"] for each in fresh.values()} == {True}
        rows = served.get("/api/reports/throughput/rows?table=throughput")["total"]
        assert 0 < rows <= listed["throughput"]["rows"]
    with closing(open_store(settings)) as store:
        assert facts(store) == here[0]
