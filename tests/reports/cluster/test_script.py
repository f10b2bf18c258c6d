"""deploy/spark.sh: starts the parts of a cluster with the Python of Bullpen."""

from __future__ import annotations

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "deploy" / "spark.sh"


def start(directory: Path, python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a directory."""
    return subprocess.run(
        ["sh", str(SCRIPT), *arguments],
        cwd=directory,
        env={"PATH": "/usr/bin:/bin", "PYTHON": python},
        capture_output=True,
        text=True,
        timeout=30,
    )


def write_program(path: Path, command: str) -> None:
    """Write an executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o700)


def test_spark_gets_the_absolute_path_of_python(tmp_path: Path) -> None:
    """A server of Spark Connect runs it in another directory."""
    write_program(tmp_path / "venv/python", f"echo {tmp_path}")
    for name in ("spark-class", "spark-submit"):
        write_program(tmp_path / "bin" / name, 'echo "$PYSPARK_PYTHON"')
    found = {
        part: start(tmp_path, "venv/python", part, "127.0.0.1", "1").stdout.strip()
        for part in ("master", "worker", "connect")
    }
    assert found == dict.fromkeys(found, str(tmp_path / "venv/python"))


def test_a_python_without_spark_is_named(tmp_path: Path) -> None:
    write_program(tmp_path / "venv/python", "exit 1")
    for python in ("venv/python", "venv/missing"):
        ended = start(tmp_path, python, "master", "127.0.0.1")
        assert (ended.returncode, f"{python} does not have Spark" in ended.stderr) == (2, True)
