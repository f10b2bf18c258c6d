"""The wheel is complete: it runs outside the checkout, and describes itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from email.message import Message
from email.parser import HeaderParser
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.cli.command import without_agents
from tests.installed import ROOT, build_wheel, install_wheel, required_by
from tests.ports import free_port

LIMIT = 120.0


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel."""
    directory = tmp_path_factory.mktemp("wheel")
    install_wheel(build_wheel(directory), directory / "venv")
    return directory / "venv"


@pytest.fixture
def home() -> Iterator[Path]:
    """A new home directory with a path that is short enough for sockets."""
    directory = Path(tempfile.mkdtemp(prefix="bp-wheel-", dir="/tmp"))
    yield directory
    shutil.rmtree(directory)


def _metadata(environment: Path) -> tuple[Distribution, Message]:
    (path,) = environment.glob("lib/python*/site-packages/bullpen-*.dist-info")
    return Distribution.at(path), HeaderParser().parsestr((path / "METADATA").read_text())


def test_the_wheel_has_readme_license_keywords_and_classifiers(environment: Path) -> None:
    installed, metadata = _metadata(environment)
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Summary"]
    assert metadata["Keywords"]
    assert "Operating System :: POSIX :: Linux" in metadata.get_all("Classifier", [])
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")
    license_text = installed.read_text("licenses/LICENSE")
    assert license_text == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_a_plain_install_has_every_channel_and_spark_is_an_extra(environment: Path) -> None:
    installed, metadata = _metadata(environment)
    required = set(required_by(installed))
    assert {"slack-sdk", "twilio", "discord-py", "python-telegram-bot"} <= required
    assert "reports" in metadata.get_all("Provides-Extra", [])
    assert not {"pyspark", "pytest"} & required


def test_every_test_tool_stays_in_the_development_group() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    runtime = {Requirement(each).name for each in project["project"]["dependencies"]}
    tools = [each for each in project["dependency-groups"]["dev"] if isinstance(each, str)]
    assert not runtime & {Requirement(each).name for each in tools}


@pytest.mark.slow
def test_the_wheel_runs_outside_the_checkout(environment: Path, home: Path) -> None:
    environ = {
        "HOME": str(home),
        "PATH": without_agents(os.defpath),
        "BULLPEN_API_PORT": str(free_port()),
    }

    def bullpen(*args: str, program: tuple[str, ...] = ("bin/bullpen",)) -> str:
        command = [str(environment / program[0]), *program[1:], *args]
        done = subprocess.run(
            command,
            env=environ,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return done.stdout

    assert bullpen("--version") == bullpen("--version", program=("bin/python", "-m", "bullpen"))
    try:
        bullpen("up")
        assert "hello" in bullpen("send", "hello")
        assert "running" in bullpen("status")
        bullpen("doctor")
    finally:
        bullpen("down")
