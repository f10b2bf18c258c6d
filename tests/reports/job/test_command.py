"""The command `bullpen report run`, as a process."""

from __future__ import annotations

import random
import signal
import subprocess
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from bullpen.core.settings import Settings
from tests import later_revision
from tests.cli.command import PROGRAM, Bullpen
from tests.cli.schemas.reports import Computed
from tests.reports.conftest import ClassArchives
from tests.reports.job.facts import SPRING, write_history
from tests.stores import Stores

LIMIT = 120


@pytest.fixture
def settings(stores: Stores) -> Settings:
    return stores.settings("sqlite")


def report_run(settings: Settings, *options: str) -> subprocess.Popen[str]:
    """Start the command."""
    return subprocess.Popen(
        [*PROGRAM, "report", "run", *options],
        env=Bullpen(settings.home).environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
def test_follow_prints_each_run_and_ends_at_sigterm_with_all_its_processes(
    settings: Settings, stores: Stores, class_archives: ClassArchives
) -> None:
    class_archives.lend(settings.home)
    with stores.opened(settings) as store:
        write_history(store, random.Random(1), SPRING, 20)
    with report_run(settings, "--follow", "--json") as process:
        assert process.stdout is not None
        computed = TypeAdapter(Computed).validate_json(process.stdout.readline())
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert children
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 0
        assert not [each for each in children if Path(f"/proc/{each}").exists()]
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert (computed.changed, computed.landed.attempts, computed.landed.events) == (True, 20, 20)
    assert "people" in {each.name for each in computed.reports if each.rows}
    result = Bullpen(settings.home).ok("report", "run")
    assert result.out.startswith("Nothing is new. ")
    assert "Spark" not in result.err


def test_what_a_run_is_to_compute_is_checked_before_it_begins(settings: Settings) -> None:
    bullpen = Bullpen(settings.home)
    refused = {
        ("--again", "--from", "2026-11-01"): "not both",
        ("--from", "2026-13-01"): "not a date in the form YYYY-MM-DD",
    }
    for options, reason in refused.items():
        result = bullpen("report", "run", *options)
        assert (result.status, reason in result.err) == (2, True), options


def test_a_store_of_a_later_version_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stores: Stores
) -> None:
    with stores.opened(settings) as store, store.write() as tx:
        tx.fetch(f"UPDATE alembic_version SET version_num = '{later_revision.LATER_REVISION}'")
    result = Bullpen(settings.home)("report", "run", "--json")
    assert (result.status, result.json["code"]) == (1, "schema_too_new")


@pytest.mark.parametrize("package", ["pyspark", "pyarrow"])
def test_without_the_extra_it_says_what_to_type(settings: Settings, package: str) -> None:
    hidden = (
        "import importlib.util as u, sys; found = u.find_spec;"
        f"u.find_spec = lambda name, *a: None if name == '{package}' else found(name, *a);"
        "from bullpen.cli.main import main; main()"
    )
    process = subprocess.run(
        [PROGRAM[0], "-c", hidden, "report", "run"],
        env=Bullpen(settings.home).environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert process.returncode == 1
    assert f"no package {package}" in process.stderr
    assert "make reports" in process.stderr
